import type { FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Files, nodeFiles } from '../../../src/storage/blobs/disk/files.ts'

/** A call to the disk: `write <name>`, `sync <name>`, `close <name>`, `rename <new name>`, `mkdir <name>` and so on. */
export type DiskCall = string

/** The real disk, with a record of the calls that returned; `before` runs before each call. */
export function watchedFiles(before: (call: DiskCall) => void | Promise<void> = () => undefined): {
  readonly files: Files
  readonly calls: DiskCall[]
} {
  const calls: DiskCall[] = []

  async function watch<Result>(call: DiskCall, work: () => Promise<Result>): Promise<Result> {
    await before(call)
    const result = await work()
    calls.push(call)
    return result
  }

  function watchAtOnce<Result>(call: DiskCall, work: () => Result): Result {
    void before(call)
    const result = work()
    calls.push(call)
    return result
  }

  function watchHandle(handle: FileHandle, name: string): FileHandle {
    return new Proxy(handle, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value !== 'function') return value
        const method = value.bind(target)
        if (key !== 'sync' && key !== 'datasync' && key !== 'write' && key !== 'close') return method
        return (...args: unknown[]) => watch(`${key} ${name}`, () => method(...args))
      },
    })
  }

  const files: Files = {
    create: (path) => {
      const name = basename(path)
      return watch(`open ${name}`, async () => {
        const file = await nodeFiles.create(path)
        return {
          write: (bytes) => watch(`write ${name}`, () => file.write(bytes)),
          sync: () => watch(`sync ${name}`, file.sync),
          close: () => watch(`close ${name}`, file.close),
        }
      })
    },
    open: (path, ...rest) =>
      watch(`open ${basename(String(path))}`, async () =>
        watchHandle(await nodeFiles.open(path, ...rest), basename(String(path))),
      ),
    openDirectory(path) {
      const name = basename(path)
      const opened = watchAtOnce(`open ${name}`, () => nodeFiles.openDirectory(path))
      return {
        sync: () => watch(`sync ${name}`, opened.sync),
        syncNow: () => watchAtOnce(`sync ${name}`, opened.syncNow),
        close: () => watchAtOnce(`close ${name}`, opened.close),
      }
    },
    lstat: nodeFiles.lstat,
    mkdir: (path, mode) => watch(`mkdir ${basename(path)}`, () => nodeFiles.mkdir(path, mode)),
    rename: (from, to) => watch(`rename ${basename(to)}`, () => nodeFiles.rename(from, to)),
    rmdir: (path) => watch(`rmdir ${basename(path)}`, () => nodeFiles.rmdir(path)),
    unlink: (path) => watch(`unlink ${basename(path)}`, () => nodeFiles.unlink(path)),
  }
  return { files, calls }
}

/** An error as the operating system reports it. */
export const systemError = (code: string): Error => Object.assign(new Error(`${code}: from a test`), { code })
