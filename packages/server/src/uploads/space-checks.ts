import type { IncomingFile, IncomingFiles, StoreItems, StoreSmallFile } from './commit.ts'
import type { AppendUpload } from './resumable-chunks.ts'
import type { CreateUpload } from './resumable-uploads.ts'
import type { FreeSpace, SpaceClaim } from './space.ts'

// These wrappers throw Fault `storage-full` if an upload would use the reserved free space (docs/interface.md S4).

export const storeItemsWithSpaceCheck =
  (space: FreeSpace, store: StoreItems): StoreItems =>
  async (bucket, files, options) => {
    const claim = space.claim(options.atMost ?? options.declaredBytes ?? 0)
    try {
      return await store(bucket, countedFiles(files, claim), options)
    } finally {
      claim.release()
    }
  }

export const storeSmallFileWithSpaceCheck =
  (space: FreeSpace, store: StoreSmallFile): StoreSmallFile =>
  async (bucket, file, key, by) => {
    const claim = space.claim(file.bytes.byteLength)
    try {
      return await store(bucket, file, key, by)
    } finally {
      claim.release()
    }
  }

export const createUploadWithSpaceCheck =
  (space: FreeSpace, create: CreateUpload): CreateUpload =>
  (bucketId, request) => {
    space.claim(request.length ?? 0).release()
    return create(bucketId, request)
  }

export const appendUploadWithSpaceCheck =
  (space: FreeSpace, append: AppendUpload): AppendUpload =>
  async (id, chunk) => {
    const claim = space.claim(chunk.declaredBytes ?? 0)
    try {
      return await append(id, { ...chunk, source: counted(chunk.source, claim) })
    } finally {
      claim.release()
    }
  }

async function* countedFiles(
  files: IncomingFiles,
  claim: SpaceClaim,
): AsyncGenerator<readonly IncomingFile[]> {
  for await (const group of files) {
    const arrived = group.reduce(
      (sum, { body }) => sum + (body instanceof Uint8Array ? body.byteLength : 0),
      0,
    )
    if (arrived > 0) claim.arrived(arrived)
    yield group.map((file) => countedFile(file, claim))
  }
}

const countedFile = (file: IncomingFile, claim: SpaceClaim): IncomingFile =>
  file.body instanceof Uint8Array ? file : { ...file, body: counted(file.body, claim) }

async function* counted(source: AsyncIterable<Uint8Array>, claim: SpaceClaim): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    claim.arrived(chunk.byteLength)
    yield chunk
  }
}
