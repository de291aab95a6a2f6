// SPDX-License-Identifier: Apache-2.0
//
// Node's gRPC and the contract's files are all that a Node program needs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from './daemon.mjs';
import { RawSession, duration, grpc, stub } from './raw_session.mjs';

let daemon;
let client;

before(async () => {
  daemon = await startDaemon();
  client = stub(daemon.address);
});
after(async () => {
  client.close();
  await daemon.kill();
});

const call = (method, request, options = {}) => new Promise((resolve, reject) => {
  client[method](request, options, (error, answer) => (error ? reject(error) : resolve(answer)));
});
const inspect = async (key) => (await call('Inspect', { key })).state;

// Polls, because nobody announces a key's state; fails after `within` ms.
async function until(condition, what, within = 5000) {
  const limit = performance.now() + within;
  while (!(await condition())) {
    assert.ok(performance.now() < limit, `not within ${within} ms: ${what}`);
    await new Promise(setImmediate);
  }
}

test('a session acquires, nests, releases, and its pings keep it alive', async () => {
  const session = await RawSession.open(daemon.address, { ttl: 2, lease: 1 });
  const owner = 'an-owner-that-nobody-guesses';
  const first = await session.acquire('k', { owner });
  assert.equal(first.outcome, 'OUTCOME_ACQUIRED');
  const { grant } = first;
  const second = await session.acquire('k', { owner });
  assert.equal(second.grant.holdCount, 2);
  assert.equal(second.grant.fencingToken, grant.fencingToken);
  assert.ok(Number.isSafeInteger(grant.fencingToken) && grant.fencingToken > 0);

  // Longer than ttl and lease.
  const end = performance.now() + 2600;
  await until(() => {
    assert.ok(session.isValid(grant.holdId), 'held all the time');
    return performance.now() > end;
  }, 'time passes');
  assert.equal(await session.release(grant), 1);
  assert.equal((await inspect('k')).free, false);
  assert.equal(await session.release(grant), 0);
  assert.equal((await inspect('k')).free, true);
  await session.close();
});

test('the next in line is granted by push when the holder releases', async () => {
  const [holder, waiter] = await Promise.all([RawSession.open(daemon.address), RawSession.open(daemon.address)]);
  const { grant } = await holder.acquire('line');
  const waiting = waiter.acquire('line', { wait: 20 });
  await until(async () => (await inspect('line')).queueLength === 1, 'one waits');
  await holder.release(grant);
  const next = (await waiting).grant;
  assert.ok(next.fencingToken > grant.fencingToken);
  await Promise.all([holder.close(), waiter.close()]);
  await until(async () => (await inspect('line')).free, 'the closed session gave it back', 1000);
});

test('a cancelled acquire is answered CANCELLED and leaves the line', async () => {
  const session = await RawSession.open(daemon.address);
  const held = (await call('Acquire', { key: 'cancel' })).grant;
  const waiting = session.acquire('cancel', { wait: 20 });
  await until(async () => (await inspect('cancel')).queueLength === 1, 'it waits');
  session.cancel(waiting);
  await assert.rejects(waiting, { reason: 'ERROR_REASON_CANCELLED' });
  await call('Release', held);
  assert.equal((await inspect('cancel')).free, true);
  await session.close();
});

test('a call whose deadline passes removes its waiter', async () => {
  const held = (await call('Acquire', { key: 'deadline' })).grant;
  const waiting = call('Acquire', { key: 'deadline', wait: duration(20) }, { deadline: Date.now() + 300 });
  await until(async () => (await inspect('deadline')).queueLength === 1, 'it waits');
  await assert.rejects(waiting, { code: grpc.status.DEADLINE_EXCEEDED });
  await until(async () => (await inspect('deadline')).queueLength === 0, 'its waiter is gone', 1000);
  await call('Release', held);
  assert.equal((await inspect('deadline')).free, true);
});

test('a refusal names reason and field in the trailing metadata', async () => {
  const error = await call('Acquire', { key: '' }).catch((e) => e);
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  assert.deepEqual(error.metadata.get('holdfast-reason'), ['INVALID_FIELD']);
  assert.deepEqual(error.metadata.get('holdfast-field'), ['key']);
  assert.ok(Buffer.isBuffer(error.metadata.get('holdfast-error-bin')[0]));
});

test('a hold that reaches its max_hold is told lost', async () => {
  const session = await RawSession.open(daemon.address);
  const { grant } = await session.send({ acquire: { key: 'max', lease: duration(1), maxHold: duration(0.5) } });
  await until(() => session.losses.length > 0, 'a loss');
  const [lost] = session.losses;
  assert.deepEqual([lost.key, lost.holdId, lost.reason], ['max', grant.holdId, 'LOSS_REASON_MAX_HOLD']);
  assert.equal(session.isValid(grant.holdId), false);
  await session.close();
});

test('when its daemon is killed a session ends, and does not believe past its limits', async (t) => {
  const mortal = await startDaemon();
  t.after(mortal.kill);
  const session = await RawSession.open(mortal.address, { ttl: 2, lease: 1 });
  const { grant } = await session.acquire('k');
  assert.ok(session.isValid(grant.holdId));
  await mortal.kill();
  assert.equal((await session.ended).code, grpc.status.UNAVAILABLE);
  await until(() => !session.isValid(grant.holdId), 'it doubts', 1100);
  session.client.close();
});
