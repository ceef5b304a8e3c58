import type { FreeSpace, Room } from './free-space.ts'
import type { IncomingFile, StoreMedia } from './store-media.ts'
import type { AppendUpload } from './uploads/append-upload.ts'
import type { CreateUpload } from './uploads/create-upload.ts'

// Uploads that are refused with Fault `storage-full` where they would use up the reserve (docs/interface.md S4).

export const storeWithinSpace =
  (space: FreeSpace, store: StoreMedia): StoreMedia =>
  async (bucketId, files, options = {}) => {
    const room = space.hold(options.atMost ?? options.declaredBytes ?? 0)
    try {
      return await store(bucketId, countedFiles(files, room), options)
    } finally {
      room.release()
    }
  }

export const createWithinSpace =
  (space: FreeSpace, create: CreateUpload): CreateUpload =>
  (bucketId, request) => {
    space.hold(request.length ?? 0).release()
    return create(bucketId, request)
  }

export const appendWithinSpace =
  (space: FreeSpace, append: AppendUpload): AppendUpload =>
  async (id, piece) => {
    const room = space.hold(piece.declaredBytes ?? 0)
    try {
      return await append(id, { ...piece, source: counted(piece.source, room) })
    } finally {
      room.release()
    }
  }

async function* countedFiles(files: AsyncIterable<IncomingFile>, room: Room): AsyncGenerator<IncomingFile> {
  for await (const file of files) yield { ...file, source: counted(file.source, room) }
}

async function* counted(source: AsyncIterable<Uint8Array>, room: Room): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    room.arrived(chunk.byteLength)
    yield chunk
  }
}
