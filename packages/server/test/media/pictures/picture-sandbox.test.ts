import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// Opens files until there are no descriptors, looks for the sandbox, and looks again with descriptors.
const script = `
import { closeSync, openSync } from 'node:fs'
const { findPictureSandbox } = await import(process.argv[1])
const open = []
let code = null
try { for (;;) open.push(openSync('/dev/null', 'r')) } catch {}
try { findPictureSandbox() } catch (error) { code = error.code }
for (const descriptor of open) closeSync(descriptor)
console.log(JSON.stringify({ code, enforced: findPictureSandbox().enforced }))`

test.skipIf(process.platform !== 'linux')(
  'a sandbox that cannot be tried for want of file descriptors is not taken for one that the system lacks',
  async () => {
    const module = new URL('../../../src/media/pictures/picture-sandbox.ts', import.meta.url).href
    const command = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath]
    const { stdout } = await promisify(execFile)('/bin/sh', [
      ...command,
      '--input-type=module',
      '-e',
      script,
      module,
    ])
    expect(JSON.parse(stdout)).toEqual({
      code: 'EMFILE',
      enforced: expect.objectContaining({ noWrite: expect.any(Boolean) }),
    })
  },
)
