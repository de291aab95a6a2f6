// SPDX-License-Identifier: Apache-2.0
//
// A holdfastd of a test's own, gone when the test is.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

export async function startDaemon() {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-'));
  const program = path.join(process.env.HOLDFAST_BIN ?? 'build/bin', 'holdfastd');
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', program, '--listen=127.0.0.1:0', `--store=memory:${folder}/state`],
    { stdio: ['ignore', 'pipe', 'ignore'] });
  const gone = once(child, 'exit');
  for await (const line of readline.createInterface({ input: child.stdout })) {
    if (!line.startsWith('serving: ')) continue;
    const kill = async () => {
      child.kill('SIGKILL'); // does nothing the second time
      await gone;
      rmSync(folder, { recursive: true, force: true });
    };
    return { address: line.slice('serving: '.length), kill };
  }
  throw new Error('holdfastd ended before it served');
}
