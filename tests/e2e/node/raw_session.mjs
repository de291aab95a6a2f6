// SPDX-License-Identifier: Apache-2.0
//
// A session from bare stubs, as a Node program without a library of ours writes it: one stream, pings
// on a timer, a promise per command, and the holder's clock.
import { createRequire } from 'node:module';
import { hrtime } from 'node:process';
import path from 'node:path';

const require = createRequire(import.meta.url);
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const root = process.env.HOLDFAST_ROOT;
const definition = protoLoader.loadSync('holdfast/v1/lock.proto', {
  includeDirs: [path.join(root, 'proto')], longs: Number, enums: String, oneofs: true, defaults: true,
});
export const { LockService } = grpc.loadPackageDefinition(definition).holdfast.v1;
export { grpc };

export const stub = (address) => new LockService(address, grpc.credentials.createInsecure());

// Node has no CLOCK_BOOTTIME: this one stands still while the machine sleeps, so a program that must
// survive a suspend under a lock looks at /proc/uptime as well.
export const now = () => Number(hrtime.bigint()) / 1e9;
export const duration = (seconds) => ({
  seconds: Math.trunc(seconds), nanos: Math.round((seconds % 1) * 1e9),
});
export const seconds = (d) => Number(d.seconds) + d.nanos / 1e9;

export class RawSession {
  static async open(address, { ttl = 10, lease = 30 } = {}) {
    const session = new RawSession(address, ttl, lease);
    await session.opened;
    return session;
  }

  constructor(address, ttl, lease) {
    this.holds = new Map();
    this.pending = new Map();
    this.losses = [];
    this.nextId = 1;
    this.client = stub(address);
    this.stream = this.client.Session();
    this.ended = new Promise((resolve) => {
      this.stream.on('error', (error) => resolve(error));
      this.stream.on('end', () => resolve(null));
    });
    this.ended.then((error) => this.#fail(error ?? new Error('the session has ended')));
    this.stream.on('data', (message) => message.events.forEach((event) => this.#onEvent(event)));
    this.openSent = now();
    this.opened = new Promise((resolve, reject) => {
      this.onOpened = resolve;
      this.ended.then((error) => reject(error));
    });
    this.stream.write({ open: { protocol: 1, clientName: 'node test', ttl: duration(ttl), lease: duration(lease) } });
  }

  #onEvent(event) {
    if (event.opened) {
      const { ttl, lease, safetyMargin } = event.opened;
      this.ttl = seconds(ttl);
      this.margin = seconds(safetyMargin);
      this.validUntil = this.openSent + this.ttl - this.margin;
      // Only pongs tell of renewals: a third of what runs out first.
      const every = Math.min(this.ttl, seconds(lease)) / 3;
      this.pinger = setInterval(() => this.ping().catch(() => {}), every * 1000);
      this.onOpened(event.opened);
    } else if (event.pong) {
      const { resolve, sent } = this.#take(event.pong.requestId);
      this.validUntil = Math.max(this.validUntil, sent + this.ttl - this.margin);
      for (const hold of event.pong.validFor ? this.holds.values() : []) {
        hold.until = Math.max(hold.until, sent + seconds(event.pong.validFor) - hold.margin);
      }
      resolve(event.pong);
    } else if (event.lost) {
      this.losses.push(event.lost);
      const hold = this.holds.get(event.lost.holdId);
      if (hold) hold.lost = event.lost.reason;
      this.send({ lostAck: { holdId: event.lost.holdId } }).catch(() => {});
    } else if (event.reply) {
      const { resolve, reject, sent } = this.#take(event.reply.requestId);
      if (event.reply.error) return reject(Object.assign(new Error(event.reply.error.message), event.reply.error));
      const grant = event.reply.acquire?.grant;
      if (grant) this.#keep(grant, sent);
      resolve(event.reply[event.reply.outcome]);
    }
  }

  #keep(grant, sent) {
    const margin = seconds(grant.safetyMargin);
    const granted = sent + seconds(grant.waited) - margin;
    const hold = {
      ...grant, margin, lost: null, until: granted + seconds(grant.lease),
      neverPast: grant.maxHoldRemaining ? granted + seconds(grant.maxHoldRemaining) : Infinity,
    };
    this.holds.set(grant.holdId, hold);
  }

  #take(requestId) {
    const waiting = this.pending.get(requestId);
    this.pending.delete(requestId);
    return waiting;
  }

  #fail(error) {
    clearInterval(this.pinger);
    for (const { reject } of this.pending.values()) reject(error);
    this.pending.clear();
  }

  // One command; a promise of its reply, with the id that `cancel` names.
  send(command) {
    const requestId = this.nextId++;
    const reply = new Promise((resolve, reject) => this.pending.set(requestId, { resolve, reject, sent: now() }));
    this.stream.write({ commands: [{ requestId, ...command }] });
    return Object.assign(reply, { requestId });
  }

  ping() { return this.send({ ping: {} }); }

  cancel(reply) {
    this.stream.write({ commands: [{ requestId: this.nextId++, cancel: { cancelledRequestId: reply.requestId } }] });
  }

  acquire(key, { wait = 0, owner = '' } = {}) {
    return this.send({ acquire: { key, owner, wait: duration(wait) } });
  }

  // How often the owner still holds the key.
  async release({ key, owner, holdId, namespace }) {
    return (await this.send({ release: { key, owner, holdId, namespace } })).remainingCount;
  }

  isValid(holdId) {
    const hold = this.holds.get(holdId);
    return !hold.lost && now() < Math.min(hold.until, hold.neverPast, this.validUntil);
  }

  async close() {
    this.stream.end();
    await this.ended;
    this.client.close();
  }
}
