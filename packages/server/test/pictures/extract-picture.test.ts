import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { chmod, copyFile, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { film } from '../../../../test/harness/films.ts'
import { hungryPdf } from '../../../../test/harness/pdf.ts'
import { phonePicture } from '../../../../test/harness/phone-pictures.ts'
import { quarters } from '../../../../test/harness/pictures.ts'
import { needTools } from '../../../../test/harness/tools.ts'
import { until } from '../../../../test/harness/until.ts'
import type { PictureTool } from '../../src/core/variants.ts'
import { extractPicture } from '../../src/pictures/extracted-pictures.ts'
import { PictureWorkers } from '../../src/pictures/picture-workers.ts'
import { extractionFor, findTools, missingPackages, sourceFileOf } from '../../src/pictures/tools.ts'

const onLinux = process.platform === 'linux'
const form = { width: 10, height: 10, fit: 'contain', format: 'webp' } as const
const memory = 600_000_000
const tools = findTools(process.env['PATH'] ?? '')
const [program, probe] = [tools.get('ffmpeg'), tools.get('ffprobe')]

async function script(text: string) {
  const directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-tool-'))
  const program = join(directory.path, 'tool')
  await writeFile(program, `#!/bin/sh\n${text}\n`)
  await chmod(program, 0o755)
  return { program, path: directory.path, [Symbol.asyncDispose]: () => directory.remove() }
}

test.runIf(onLinux)(
  'V15 a program has no environment, writes no file, gains no privilege, and has limited memory',
  async () => {
    await using tool = await script(`
    env | grep -vE '^(PWD|SHLVL|_)='
    (echo x > "$(dirname "$0")/written") 2>/dev/null || echo refused
    grep NoNewPrivs /proc/self/status
    ulimit -d; ulimit -c`)
    const found = await extractPicture(
      { tool: 'pdftoppm', program: tool.program },
      '/nowhere',
      { form, maxPixels: 1 },
      memory,
    )
    expect(
      Buffer.from(found && 'bytes' in found ? found.bytes : [])
        .toString()
        .split(/\s+/),
    ).toEqual(['refused', 'NoNewPrivs:', '1', `${Math.floor(memory / 1024)}`, '0', ''])
  },
)

/** The largest memory in bytes that a process of this program had at a time, until the promise settles. */
async function peakUntil(end: Promise<unknown>, program: string): Promise<number> {
  let [isRunning, peak] = [true, 0]
  end.finally(() => {
    isRunning = false
  })
  while (isRunning) {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const read = (name: string) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
      if (!(await read('cmdline')).startsWith(`${program}\0`)) continue
      const [, kilobytes = 0] = /^VmHWM:\s+(\d+) kB$/m.exec(await read('status')) ?? []
      peak = Math.max(peak, Number(kilobytes) * 1024)
    }
    await setImmediate()
  }
  return peak
}

const size = (side: number) => ({ width: side, height: side })
const types = { 'heif-convert': 'image/heic', pdftoppm: 'application/pdf', ffmpeg: 'video/quicktime' }

/** Files of a few kB that need from 300 MB to some GB. */
const hungry: readonly (readonly [PictureTool, () => Promise<Buffer>])[] = [
  [
    'heif-convert',
    async () =>
      phonePicture(await quarters(512, 512).png().toBuffer(), size(512), { declared: size(12_288) }),
  ],
  ['pdftoppm', async () => hungryPdf(30_000_000)],
  ['ffmpeg', () => film('mov', '6400x6400', ['-c:v', 'qtrle', '-pix_fmt', 'argb', '-frames:v', '1'])],
]

test.runIf(onLinux).each(hungry)(
  'V6, V15 %s has no more memory than the limit, whatever a file makes it request',
  async (name, make) => {
    needTools('ffmpeg', 'heif-convert', 'pdftoppm')
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-hungry-'))
    // A name of its own, because other tests run the program too.
    const program = join(directory.path, name)
    await copyFile(tools.get(name) ?? '', program)
    const bytes = new Uint8Array(await make())
    const file = await sourceFileOf({
      content: { type: 'bytes', bytes },
      isWhole: true,
      release: async () => undefined,
    })
    const extraction = extractionFor(types[name], new Map(tools).set(name, program), file)
    if (extraction === null) throw new Error('the program is not used')
    const limit = 150_000_000
    const found = extractPicture(extraction, file.path, { form, maxPixels: 200e6 }, limit)
    // Besides, a process has the programs and libraries that it maps.
    expect(await peakUntil(found, program)).toBeLessThan(limit + 80e6)
    expect(await found).toBeNull()
    await file.release()
  },
)

test('V6 no picture is taken of a video with more pixels than the limit', async () => {
  needTools('ffmpeg')
  const bytes = new Uint8Array(await film('mp4', '320x180', ['-frames:v', '1']))
  const content = { type: 'bytes', bytes } as const
  const file = await sourceFileOf({ content, isWhole: true, release: async () => undefined })
  const extraction = extractionFor('video/mp4', tools, file)
  if (extraction === null) throw new Error('the program is not used')
  const take = (maxPixels: number) => extractPicture(extraction, file.path, { form, maxPixels }, memory)
  expect([await take(320 * 180 - 1), await take(320 * 180)]).toEqual([null, expect.anything()])
  await file.release()
})

test.runIf(onLinux)('V6 the output of a program is limited', async () => {
  await using tool = await script('exec head -c 200000000 /dev/zero')
  const task = { form, maxPixels: 1 }
  expect(
    await extractPicture({ tool: 'pdftoppm', program: tool.program }, '/nowhere', task, memory),
  ).toBeNull()
})

test.runIf(onLinux)('V6 a program that exceeds the time limit ends with its process', async () => {
  const seconds = `9${process.pid}`
  await using tool = await script(`exec sleep ${seconds}`)
  const extraction = { tool: 'pdftoppm', program: tool.program } as const
  const task = {
    type: 'resize',
    picture: '/nowhere',
    form,
    maxPixels: 1,
    recorded: null,
    extraction,
  } as const
  const running = async () =>
    (await promisify(execFile)('ps', ['-eo', 'args'])).stdout
      .split('\n')
      .filter((line) => line === `sleep ${seconds}`)
  // The limit includes the start of the process, which takes seconds on a busy machine.
  let wasRunning = false
  for (let timeout = 2_000; !wasRunning; timeout *= 2) {
    const workers = new PictureWorkers({
      ...{ workers: 1, queue: 1, queueTimeout: 60_000, timeout, memory, niceness: 5 },
      startPrograms: true,
    })
    let hasFailed = false
    const failed = expect(workers.run(task))
      .rejects.toThrow('ended')
      .finally(() => {
        hasFailed = true
      })
    await until('the program runs, or the task has failed', async () => {
      wasRunning = (await running()).length === 1
      return wasRunning || hasFailed
    })
    await failed
    await until('the program has ended', async () => (await running()).length === 0)
    workers.close()
  }
})

test.runIf(onLinux)(
  'V15 ffmpeg reads a file with the demuxer of its type only, and follows no reference of a playlist',
  async () => {
    needTools('ffmpeg')
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/a.mp4`
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-list-'))
    const [path, other] = [join(directory.path, 'list'), join(directory.path, 'other.ts')]
    const source = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:duration=1']
    await promisify(execFile)(program ?? '', ['-v', 'error', ...source, other])
    const extracted = (demuxer: string, from: string) => {
      const extraction = { tool: 'ffmpeg', program: program ?? '', probe: probe ?? '', demuxer } as const
      return extractPicture(extraction, from, { form, maxPixels: 1e6 }, memory)
    }
    expect(await extracted('mpegts', other)).not.toBeNull()
    for (const target of [url, other])
      for (const list of [
        `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${target}\n#EXT-X-ENDLIST\n`,
        `ffconcat version 1.0\nfile ${target}\n`,
      ]) {
        await writeFile(path, list)
        for (const demuxer of ['mov', 'matroska', 'mpegts', 'avi'])
          expect(await extracted(demuxer, path)).toBeNull()
      }
    expect(connections).toBe(0)
    server.close()
  },
)

test('V14 programs are found on the path, and the packages of the others are named', () => {
  expect(missingPackages(findTools('/nonexistent:relative'))).toEqual([
    'ffmpeg',
    'poppler-utils',
    'libheif-examples',
  ])
})
