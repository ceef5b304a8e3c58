import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import mime from 'mime'

/** The bytes of a file in one coding, and a strong tag of exactly these bytes. */
interface Coded {
  readonly bytes: Buffer
  readonly etag: string
}

/** A file of the gallery as the build left it; null where the build found a coding not worth its while. */
export interface GalleryFile {
  readonly contentType: string
  readonly plain: Coded
  readonly br: Coded | null
  readonly gzip: Coded | null
}

export interface Gallery {
  readonly page: GalleryFile
  /** By their names below `/assets/`. */
  readonly assets: ReadonlyMap<string, GalleryFile>
}

/**
 * Reads the built gallery whole, which is small: what is served never changes under a running service, and no path
 * that a client sends reaches the disk. Null where it is not built.
 */
export async function readGallery(directory: string): Promise<Gallery | null> {
  const names = await readdir(directory, { recursive: true }).catch((): string[] => [])
  if (!names.includes('index.html')) return null
  const isAsset = (name: string) => /^assets[/\\][^/\\]+$/.test(name) && !/\.(br|gz)$/.test(name)
  const has = new Set(names)

  async function coded(name: string): Promise<Coded | null> {
    if (!has.has(name)) return null
    const bytes = await readFile(join(directory, name))
    return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
  }

  async function read(name: string): Promise<GalleryFile> {
    const [plain, br, gzip] = await Promise.all([coded(name), coded(`${name}.br`), coded(`${name}.gz`)])
    if (plain === null) throw new Error(`the gallery has no ${name}`)
    return { contentType: typeOf(name), plain, br, gzip }
  }

  const assets = names
    .filter(isAsset)
    .map(async (name) => [name.slice('assets/'.length), await read(name)] as const)
  return { page: await read('index.html'), assets: new Map(await Promise.all(assets)) }
}

function typeOf(name: string): string {
  const type = mime.getType(name) ?? 'application/octet-stream'
  return /^text\/|^image\/svg/.test(type) ? `${type}; charset=utf-8` : type
}
