import type { Readable } from 'node:stream'
import { DataStore, Upload as TusUpload } from '@tus/utils'
import type { BucketId, Catalog, NewMedia, Upload } from '../../catalog/catalog.ts'
import type { UploadId } from '../../core/upload-id.ts'
import type { AppendUpload } from '../../media/uploads/append-upload.ts'
import type { CreateUpload } from '../../media/uploads/create-upload.ts'
import { findUpload } from '../../media/uploads/find-upload.ts'
import { type Checksum, checked } from './checksum.ts'

interface StoreParts {
  readonly catalog: Pick<Catalog, 'upload'>
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: (id: UploadId) => Promise<void>
  readonly onStored: (item: NewMedia) => void
}

/** What one request tells beside what the library hands on. */
interface StoreRequest {
  readonly id: UploadId
  readonly bucketId: BucketId
  /** Upload-Metadata as sent. */
  readonly metadata: string | null
  readonly checksum: Checksum | null
  readonly body: AsyncIterable<Uint8Array>
  /** The length of the body; 0 where it is not declared. */
  readonly declaredBytes: number
  readonly now: number
}

/** What the tus library keeps its uploads in, for the time of one request: our operations on one upload. */
export class UploadStore extends DataStore {
  override extensions = ['creation', 'creation-with-upload', 'creation-defer-length', 'termination']
  readonly #parts: StoreParts
  readonly #request: StoreRequest
  #declaredLength: number | null = null

  constructor(parts: StoreParts, request: StoreRequest) {
    super()
    this.#parts = parts
    this.#request = request
  }

  override async create(file: TusUpload): Promise<TusUpload> {
    const { id, bucketId, metadata } = this.#request
    const told = (...names: string[]) => names.map((name) => file.metadata?.[name]).find(Boolean) ?? null
    await this.#parts.createUpload(bucketId, {
      id,
      length: file.size ?? null,
      metadata,
      filename: told('filename', 'name'),
      declaredType: told('filetype', 'type'),
    })
    if (file.size === 0) await this.#append({ offset: 0, source: nothing(), whole: true })
    return file
  }

  override async getUpload(): Promise<TusUpload> {
    const { id, length, offset } = await this.#find()
    return new TusUpload({ id, offset, ...(length === null ? {} : { size: length }) })
  }

  override async declareUploadLength(_id: string, length: number): Promise<void> {
    // Declared by the write that follows, in the upload's turn.
    this.#declaredLength = length
  }

  override async write(handedOn: Readable, _id: string, offset: number): Promise<number> {
    const { body, checksum, declaredBytes } = this.#request
    const source = checksum === null ? body : checked(body, checksum)
    const written = await this.#append({
      offset,
      source,
      whole: checksum !== null,
      length: this.#declaredLength,
      declaredBytes,
    })
    // The library waits for the end of what it handed on.
    handedOn.resume()
    return written
  }

  override async remove(): Promise<void> {
    await this.#parts.removeUpload(this.#request.id)
  }

  async #append(piece: Parameters<AppendUpload>[1]): Promise<number> {
    const { upload, item } = await this.#parts.appendUpload(this.#request.id, piece)
    if (item) this.#parts.onStored(item)
    return upload.offset
  }

  #find(): Promise<Upload> {
    const { bucketId, id, now } = this.#request
    return findUpload(this.#parts.catalog, bucketId, id, now)
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
