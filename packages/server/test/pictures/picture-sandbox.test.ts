import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// Probes the sandbox without free file descriptors, then again with them.
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
  'V11 a probe of the sandbox that fails for lack of file descriptors does not disable the sandbox',
  async () => {
    const module = new URL('../../src/pictures/picture-workers.ts', import.meta.url).href
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
