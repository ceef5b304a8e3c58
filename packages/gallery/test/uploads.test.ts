import { AnswerError, type Problem, ProblemError } from '@mediabucket/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { kindsText, limitTexts } from '../src/limit-texts.ts'
import { loadTexts, strings } from '../src/strings.ts'
import { byPath, isSystemFile } from '../src/uploads/chosen-files.ts'
import { formatDuration } from '../src/uploads/tray-texts.ts'
import { refusalMessage } from '../src/uploads/uploader/outcomes.ts'
import { nextForm } from '../src/uploads/uploader/send-files.ts'
import { createSpeed } from '../src/uploads/uploader/speed.ts'
import {
  createUploadList,
  newEntry,
  type UploadEntry,
  type UploadList,
} from '../src/uploads/uploader/upload-list.ts'
import { createUploader, type UploaderOptions } from '../src/uploads/uploader/uploader.ts'
import { canFit } from '../src/uploads/uploads-view.ts'

await loadTexts('links', 'uploads')

/** The error of a refusal, with a problem if there is one. */
function refusal(status: number, body: string, problem?: Omit<Problem, 'type'>) {
  const details = { method: 'POST', url: 'https://media.example.org/api/media', status, body }
  const all = { ...details, headers: new Headers(), attempts: 1, retryAfter: null }
  return problem ? new ProblemError(all, { type: 'about:blank', ...problem }) : new AnswerError(all, '')
}

test('the message for a refused file is the detail or the title of the problem; other responses have none', () => {
  const detail = 'The bucket holds 3 of 3 files.'
  expect(refusalMessage(refusal(400, '', { title: 'Full', detail }))).toBe(detail)
  expect(refusalMessage(refusal(400, '', { title: 'Full' }))).toBe('Full')
  for (const body of ['<html>', '']) expect(refusalMessage(refusal(400, body))).toBe(strings.uploads.unknown)
})

let lastId = 0
/** Adds an entry to the list. */
function entry(list: UploadList, path: string, size: number, modified = 1): UploadEntry {
  const file = new File([new Uint8Array(size)], path, { lastModified: modified })
  const one = newEntry({ file, path, reread: null }, `${++lastId}`)
  list.add(one)
  return one
}

test('rows are ordered by state: sending, failed, paused, waiting, done', () => {
  const list = createUploadList()
  const states = ['done', 'waiting', 'sending', 'failed', 'waiting', 'paused'] as const
  for (const [index, state] of states.entries()) list.move(entry(list, `${index}`, 1), state)
  const paths = (most: number) => list.rows(most, () => true).map(({ path }) => path)
  expect(paths(6)).toEqual(['2', '3', '5', '1', '4', '0'])
  expect(paths(4)).toEqual(['2', '3', '5', '1'])
})

test('Q1 a file can fit unless it is larger than the limit of the bucket', () => {
  expect([null, 10, 9].map((limit) => canFit(10, limit))).toEqual([true, true, false])
})

test('totals count files by state, and bytes; an empty file adds to the progress', () => {
  const list = createUploadList()
  const [empty, large, half] = [entry(list, 'a', 0), entry(list, 'b', 60), entry(list, 'c', 40)]
  expect(list.totals()).toMatchObject({ all: 3, left: 3, done: 0, sentBytes: 0, allBytes: 100, share: 0 })
  list.move(empty, 'done')
  list.move(large, 'done')
  list.update(half, { sent: 20 })
  expect(list.totals()).toMatchObject({ left: 1, done: 2, sentBytes: 80, share: 81 / 101 })
  list.update(half, { size: 20 })
  list.move(half, 'failed')
  expect(list.totals()).toMatchObject({ left: 0, failed: 1, allBytes: 80, share: 1 })
  list.remove(half)
  expect(list.totals()).toMatchObject({ all: 2, allBytes: 60, share: 1 })
  list.clear()
  expect(list.totals()).toMatchObject({ all: 0, share: 0 })
})

test('G9 files of one name, size and time in different folders are different files', () => {
  const list = createUploadList()
  const first = entry(list, 'one/same.txt', 5)
  expect(list.unfinished({ path: 'one/same.txt', size: 5, modified: 1 })).toBe(first)
  for (const other of [
    { path: 'two/same.txt', size: 5, modified: 1 },
    { path: 'one/same.txt', size: 6, modified: 1 },
    { path: 'one/same.txt', size: 5, modified: 2 },
  ])
    expect(list.unfinished(other)).toBeUndefined()
  list.move(first, 'done')
  expect(list.unfinished({ path: 'one/same.txt', size: 5, modified: 1 })).toBeUndefined()
})

test('G11 one form contains consecutive small files, at most 100 files and 4 MiB', () => {
  const list = createUploadList()
  for (let index = 0; index < 130; index++) entry(list, `${index}`, 10)
  expect(nextForm(list.in('waiting'))).toHaveLength(100)
  const mixed = createUploadList()
  for (const size of [10, 1_048_576, 1_048_577, 10]) entry(mixed, `${size}`, size)
  expect(nextForm(mixed.in('waiting')).map(({ size }) => size)).toEqual([10, 1_048_576])
  const heavy = createUploadList()
  for (let index = 0; index < 9; index++) entry(heavy, `${index}`, 1_000_000)
  expect(nextForm(heavy.in('waiting'))).toHaveLength(4)
})

test('G11 the files of a folder are in the natural order of their paths', () => {
  const paths = ['a/b10.jpg', 'a/b2.jpg', 'a/10/x', 'a/9/x', 'b/1', 'a/B2.jpg', 'a/b2.jpg2', 'A/1']
  const sorted = paths.map((path) => ({ path })).toSorted(byPath)
  expect(sorted.map(({ path }) => path)).toEqual([
    'a/9/x',
    'a/10/x',
    'a/b2.jpg',
    'a/B2.jpg',
    'a/b2.jpg2',
    'a/b10.jpg',
    'A/1',
    'b/1',
  ])
})

test.each([
  ['.DS_Store', true],
  ['album/.ds_store', true],
  ['Thumbs.db', true],
  ['album/desktop.ini', true],
  ['album/._photo.jpg', true],
  ['.localized', true],
  ['__MACOSX/album/photo.jpg', true],
  ['thumbs.db.txt', false],
  ['.gitignore', false],
  ['_.jpg', false],
])('G9 %s is a system file: %s', (path, expected) => {
  expect(isSystemFile(path)).toBe(expected)
})

test('the speed is averaged, and pauses do not count', () => {
  const speed = createSpeed()
  const at = (now: number, mega: number) =>
    speed.update(now, { bytes: mega * 1e6, files: 0 }, { bytes: (100 - mega) * 1e6, files: 0 })
  at(0, 0)
  at(500, 1)
  expect([speed.bytesPerSecond, speed.secondsLeft]).toEqual([null, null])
  for (let step = 2; step <= 20; step++) at(step * 500, step)
  expect(speed.bytesPerSecond).toBeCloseTo(2e6, -3)
  expect(speed.secondsLeft).toBeCloseTo(40, 0)
  speed.pause()
  at(60_000, 20)
  at(60_500, 21)
  expect(speed.bytesPerSecond).toBeCloseTo(2e6, -3)
})

test('G12 without progress the speed falls, and after 10 seconds there is no estimate until the next progress', () => {
  const speed = createSpeed()
  const at = (now: number, mega: number) =>
    speed.update(now, { bytes: mega * 1e6, files: 0 }, { bytes: (100 - mega) * 1e6, files: 0 })
  for (let second = 0; second <= 10; second++) at(second * 1000, second)
  for (let second = 11; second < 20; second++) at(second * 1000, 10)
  expect(speed.bytesPerSecond).toBeLessThan(1e5)
  expect(speed.secondsLeft).toBeGreaterThan(900)
  at(20_000, 10)
  expect([speed.bytesPerSecond, speed.secondsLeft]).toEqual([null, null])
  at(21_000, 11)
  expect(speed.bytesPerSecond).toBeGreaterThan(1e5)
})

test('G12 nothing is drawn any more after the page of a bucket is closed while files are sent', async () => {
  vi.useFakeTimers()
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const sending = Promise.withResolvers<void>()
  let drawn = 0
  const client: UploaderOptions['client'] = {
    uploadAll(_, { signal } = {}) {
      sending.resolve()
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    },
    deleteUpload: async () => undefined,
  }
  const uploader = createUploader({
    bucket: 'pictures',
    client,
    largeFileClient: { upload: () => Promise.reject(new Error('there is no large file')) },
    limitsNow: async () => null,
    onChange: () => {
      drawn += 1
    },
    onUnreachable() {},
    onRefused() {},
  })
  await uploader.add([{ file: new File(['a'], 'a.txt'), path: 'a.txt', reread: null }])
  await sending.promise
  await vi.advanceTimersByTimeAsync(5_000)
  expect(drawn).toBeGreaterThan(3)
  uploader.close()
  drawn = 0
  await vi.advanceTimersByTimeAsync(5_000)
  expect([drawn, vi.getTimerCount()]).toEqual([0, 0])
})

test.each([
  [2, 'a few seconds'],
  [31, '35 s'],
  [119, '2 min'],
  [3600 * 3 + 100, '3 h 2 min'],
])('%s seconds are shown as %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text)
})

test('R12 the message for a file that is too large names the limit, if the server sent it', () => {
  const tooLarge = (members: Omit<Problem, 'type'>) =>
    refusalMessage(refusal(413, '', { title: 'The file is too large', ...members }))
  const limit = { detail: '…', maximum: 5_000_000, unit: 'bytes' }
  expect(tooLarge(limit)).toBe(strings.uploads.tooLargeFor('5 MB'))
  expect(tooLarge({ errors: [{ parameter: 'max_file_size', ...limit }] })).toBe(
    strings.links.tooLarge('5 MB'),
  )
  expect(tooLarge({ detail: 'A file may have at most 5000000 bytes.' })).toBe(strings.uploads.tooLarge)
  expect(refusalMessage(refusal(413, '<html>413 Request Entity Too Large</html>'))).toBe(
    strings.uploads.tooLarge,
  )
  const detail = 'The bucket holds 3 of 3 files.'
  expect(refusalMessage(refusal(507, '', { detail }))).toBe(detail)
})

test('T10 the messages for a refused type and for an exceeded limit of a token name what it permits', () => {
  const accepted = ['image/*', 'application/pdf']
  const type = { code: 'type-refused', errors: [{ parameter: 'types', detail: '…', accepted }] }
  expect(refusalMessage(refusal(415, '', type))).toBe(strings.links.wrongType('pictures, PDF'))
  const exceeded = (left: number) =>
    refusal(403, '', {
      code: 'token-limit-exceeded',
      errors: [{ parameter: 'max_items', detail: '…', maximum: 10, unit: 'items', left }],
    })
  expect(refusalMessage(exceeded(0))).toBe(strings.links.noneLeft)
  expect(refusalMessage(exceeded(10))).toBe(strings.links.tooMuch)
})

test('Q1 the message for a full bucket names its limit in the units of the page', () => {
  const full = (parameter: string, maximum: number, unit: string) =>
    refusal(507, '', { detail: '…', errors: [{ parameter, detail: '…', maximum, unit }] })
  expect(refusalMessage(full('max_bytes', 20_000_000, 'bytes'))).toBe(strings.uploads.noRoom('20 MB'))
  expect(refusalMessage(full('max_items', 2_000, 'items'))).toBe(strings.uploads.noRoom('2,000 files'))
})

test('T9 limits in words: types have the names that people know, and what is left is no total', () => {
  expect(kindsText(['image/*', 'text/plain', 'application/pdf'])).toBe('pictures, TXT, PDF')
  const limits = {
    ...{
      max_items: null,
      max_bytes: 50_000,
      max_file_size: null,
      types: null,
      item_days: null,
      labels: null,
    },
  }
  const texts = (bytes: number) => limitTexts({ limits, left: { items: null, bytes }, expires_at: null })
  expect(texts(50_000)).toEqual([strings.links.total('50 kB')])
  expect(texts(20_000)).toEqual([strings.links.leftOfTotal('20 kB', '50 kB')])
})
