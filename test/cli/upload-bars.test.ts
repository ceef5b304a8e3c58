import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { needTools } from '../harness/tools.ts'
import { commandLine } from './client-run.ts'

/** The output of a command on a terminal of 80 columns, which util-linux's script creates; escapes are replaced by ␛. */
async function onTerminal({ command, env }: ReturnType<typeof commandLine>, more = {}): Promise<string> {
  needTools('script')
  const line = ['stty cols 80 rows 24;', ...command.map((word) => `'${word}'`)].join(' ')
  const { stdout } = await promisify(execFile)('script', ['-qec', line, '/dev/null'], {
    env: { ...env, TERM: 'xterm', ...more },
  })
  return stdout.replaceAll('\x1b', '␛')
}

test('on a terminal, bars show each request and all files, and are gone at the end', async () => {
  const server = await sharedServer()
  await using directory = await temporaryDirectory()
  for (const name of ['one.bin', 'two.bin', 'three.bin'])
    await writeFile(join(directory.path, name), Buffer.alloc(3_000_000))
  const shown = await onTerminal(commandLine(server, 'upload', directory.path))
  const plain = stripVTControlCharacters(shown.replaceAll('␛', '\x1b'))
  expect(plain).toMatch(/2 files +█*░* +\d+% +6\.0 MB/)
  expect(plain).toMatch(/two\.bin +█*░* +\d+% +3\.0 MB/)
  expect(plain).toMatch(/\d of 3 files +█*░* +\d+% +9\.0 MB/)
  for (const line of plain.split('\n').filter((text) => /[█░]/.test(text)))
    expect(line.trimEnd().length).toBeLessThan(80)
  expect(shown).toContain('␛[36m')

  // The final screen: the output is replayed line by line, with the cursor movements of the bars.
  const screen: string[] = []
  for (const part of shown.split(/(␛\[\d+F␛\[J|\r?\n)/)) {
    const up = /^␛\[(\d+)F/.exec(part)?.[1]
    if (up !== undefined) screen.splice(Math.max(0, screen.length - Number(up)))
    else if (part !== '' && !/^\r?\n$/.test(part)) screen.push(part)
  }
  expect(screen).toEqual([
    expect.stringMatching(/^http\S+\t\S+\/one\.bin$/),
    expect.stringMatching(/^http\S+\t\S+\/three\.bin$/),
    expect.stringMatching(/^http\S+\t\S+\/two\.bin$/),
    expect.stringMatching(/^Uploaded 3 of 3 files, 9\.0 MB/),
  ])

  const colourless = await onTerminal(commandLine(server, 'upload', directory.path), { NO_COLOR: '1' })
  expect(colourless).toMatch(/█|░/)
  expect(colourless).not.toMatch(/␛\[\d*m/)
})
