import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { createDirectorySync } from '../../../src/storage/blobs/disk/files.ts'
import { systemError, watchedFiles } from './watched-files.ts'

const temporary = () => mkdtempDisposable(join(tmpdir(), 'mediabucket-sync-'))

/** A directory sync whose system calls the test ends. */
function heldSync() {
  const rounds: PromiseWithResolvers<void>[] = []
  const started: PromiseWithResolvers<void>[] = []
  const roundAt = (list: PromiseWithResolvers<void>[], index: number): PromiseWithResolvers<void> => {
    while (list.length <= index) list.push(Promise.withResolvers())
    return list[index] ?? Promise.withResolvers()
  }
  let next = 0
  const { files, calls } = watchedFiles((call) => {
    if (!call.startsWith('sync')) return
    const index = next
    next += 1
    roundAt(started, index).resolve()
    return roundAt(rounds, index).promise
  })
  return {
    sync: createDirectorySync(files),
    calls,
    started: (index: number) => roundAt(started, index).promise,
    end: (index: number) => roundAt(rounds, index).resolve(),
    fail: (index: number) => roundAt(rounds, index).reject(systemError('EIO')),
  }
}

test('calls during a sync share the next sync, never the running one', async () => {
  await using directory = await temporary()
  const { sync, calls, started, end } = heldSync()
  const done: string[] = []
  const first = sync(directory.path).then(() => done.push('first'))
  await started(0)
  const later = ['second', 'third', 'fourth'].map((name) => sync(directory.path).then(() => done.push(name)))
  end(0)
  await first
  await started(1)
  expect(done).toEqual(['first'])
  end(1)
  await Promise.all(later)
  expect(done).toEqual(['first', 'second', 'third', 'fourth'])
  expect(calls.filter((call) => call.startsWith('sync'))).toHaveLength(2)
})

test('calls of one tick share a sync, and so do changes made before it starts', async () => {
  await using directory = await temporary()
  const { sync, calls, end } = heldSync()
  const all = [sync(directory.path), sync(directory.path)]
  end(0)
  await Promise.all(all)
  expect(calls.filter((call) => call.startsWith('sync'))).toHaveLength(1)
})

test('a call during the second sync waits for a third one', async () => {
  await using directory = await temporary()
  const { sync, calls, started, end } = heldSync()
  const first = sync(directory.path)
  await started(0)
  const second = sync(directory.path)
  end(0)
  await started(1)
  const third = sync(directory.path)
  end(1)
  end(2)
  await Promise.all([first, second, third])
  expect(calls.filter((call) => call.startsWith('sync'))).toHaveLength(3)
  await Promise.all([sync(directory.path), end(3)])
})

test('a failed sync rejects the calls that waited for it, and not those that wait for the next', async () => {
  await using directory = await temporary()
  const { sync, started, end, fail } = heldSync()
  const first = sync(directory.path)
  await started(0)
  const second = sync(directory.path)
  const third = sync(directory.path)
  fail(0)
  await expect(first).rejects.toMatchObject({ code: 'EIO' })
  await started(1)
  const fourth = sync(directory.path)
  fail(1)
  await expect(second).rejects.toMatchObject({ code: 'EIO' })
  await expect(third).rejects.toMatchObject({ code: 'EIO' })
  end(2)
  await fourth
})

test('syncs of different directories do not wait for one another', async () => {
  await using one = await temporary()
  await using other = await temporary()
  const { files, calls } = watchedFiles((call) =>
    call === `sync ${basename(one.path)}` ? held.promise : undefined,
  )
  const held = Promise.withResolvers<void>()
  const sync = createDirectorySync(files)
  const waiting = sync(one.path)
  await sync(other.path)
  expect(calls).toContain(`sync ${basename(other.path)}`)
  held.resolve()
  await waiting
})
