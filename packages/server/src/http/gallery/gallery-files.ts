import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import mime from 'mime'

/** A file in one content coding, with the strong entity tag of its bytes. */
interface EncodedFile {
  readonly bytes: Buffer
  readonly etag: string
}

/** A built file of the gallery; a coding is null where it is not smaller. */
export interface GalleryFile {
  readonly contentType: string
  readonly identity: EncodedFile
  readonly br: EncodedFile | null
  readonly gzip: EncodedFile | null
}

export interface Gallery {
  readonly page: GalleryFile
  /** Keyed by names below `/assets/`. */
  readonly assets: ReadonlyMap<string, GalleryFile>
}

/**
 * Reads the built gallery into memory: it does not change while the service runs, and no path of a request reaches the
 * disk. Returns null where it is not built.
 */
export async function readGallery(directory: string): Promise<Gallery | null> {
  const names = await readdir(directory, { recursive: true }).catch((): string[] => [])
  if (!names.includes('index.html')) return null
  const isAsset = (name: string) => /^assets[/\\][^/\\]+$/.test(name) && !/\.(br|gz)$/.test(name)
  const existing = new Set(names)

  async function readEncoded(name: string): Promise<EncodedFile | null> {
    if (!existing.has(name)) return null
    const bytes = await readFile(join(directory, name))
    return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
  }

  async function read(name: string): Promise<GalleryFile> {
    const [identity, br, gzip] = await Promise.all([
      readEncoded(name),
      readEncoded(`${name}.br`),
      readEncoded(`${name}.gz`),
    ])
    if (identity === null) throw new Error(`the gallery has no ${name}`)
    return { contentType: contentType(name), identity, br, gzip }
  }

  const assets = names
    .filter(isAsset)
    .map(async (name) => [name.slice('assets/'.length), await read(name)] as const)
  return { page: await read('index.html'), assets: new Map(await Promise.all(assets)) }
}

function contentType(name: string): string {
  const type = mime.getType(name) ?? 'application/octet-stream'
  return /^text\/|^image\/svg/.test(type) ? `${type}; charset=utf-8` : type
}
