import type { BlobStore, OpenBlob } from '../../blobs/blobs.ts'
import { openMemoryBlob } from '../../blobs/memory-blob.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Item } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { ItemId } from '../../core/media-id.ts'
import { toolFor } from '../../core/picture-tools.ts'
import { storageCauseOf } from '../../core/storage-error.ts'
import { isDecoded, type Variant, type VariantWait } from '../../core/variant.ts'
import { itemUnknown } from '../find-media.ts'
import { PictureTaskPreempted, VariantPending } from './picture-errors.ts'
import {
  createVariantRenderer,
  keyOf,
  type Rendered,
  type RenderParts,
  unavailable,
} from './render-variant.ts'

export type OpenVariant = Pick<OpenBlob, 'size' | 'content' | 'read' | 'stream' | 'close'>

interface OpenOptions {
  readonly wholeUpTo?: number
  readonly wait?: VariantWait
}

/** A request that waits for nothing has this time, in milliseconds, so that it is refused if the queue is full. */
const leastWait = 25

export interface Variants {
  /**
   * The variant of an item, rendered if it is not stored. Concurrent requests for one variant share one render. Throws
   * Fault `variant-unavailable`, `variants-busy`, and the faults of opening the bytes (docs/interface.md, Variants).
   * Up to `wholeUpTo` bytes, 0 by default, may be returned in memory. Throws VariantPending if it is not rendered after `wait` seconds.
   */
  open(item: Item, variant: Variant, options?: OpenOptions): Promise<OpenVariant>
  /** Renders and stores a variant that is not stored, while no request needs the workers. Throws as `open`, and PictureTaskPreempted. */
  renderAhead(item: Item, variant: Variant): Promise<void>
  /** Resolves when every variant whose worker has replied is stored. */
  settled(): Promise<void>
}

/** A render in progress, until its variant is stored. */
interface Render {
  readonly rendered: Promise<Rendered>
  /** Never rejects. */
  readonly stored: Promise<void>
  /** Whether its worker has replied. */
  hasResult: boolean
}

export function createVariants(
  parts: RenderParts & {
    readonly catalog: Pick<Catalog, 'item' | 'setPreview'>
    readonly blobs: Pick<BlobStore, 'variants'>
    /** Fails for an item whose bytes are missing or damaged. */
    readonly openBytes: (item: Item) => Promise<OpenBlob>
    /** False if the disk is too full to store variants. They are rendered and served without being stored. */
    readonly hasRoom: () => boolean
    /** A variant was rendered and served, but it, or what the render has found, could not be stored; or a stored one could not be read. */
    readonly onStoreFailure: (id: ItemId, error: unknown) => void
  },
): Variants {
  const { catalog, blobs, openBytes, tools, hasRoom } = parts
  const renderer = createVariantRenderer(parts)
  const renders = new Map<string, Render>()

  /** A delete removes variants after the row. A variant that is stored later is removed here. */
  async function store(item: Item, variant: Variant, { bytes, preview }: Rendered): Promise<void> {
    try {
      if (!hasRoom()) return
      // The variant first: without it, each request would render again while the catalog cannot be written.
      await blobs.variants.store(item.id, variant.key, bytes)
      if ((await catalog.item(item.id)) === null) await blobs.variants.remove(item.id)
      else if (preview !== null) await catalog.setPreview(item.bucketId, item.id, preview)
    } catch (error) {
      parts.onStoreFailure(item.id, error)
    }
  }

  function start(item: Item, variant: Variant, opened: OpenBlob, isAhead: boolean): Render {
    const key = keyOf(item, variant)
    const onResult = () => {
      render.hasResult = true
    }
    const rendered = renderer.render(item, variant, opened, { isAhead, onResult }).catch((error: unknown) => {
      // Before the requests that share it receive the error: they start another render.
      renders.delete(key)
      throw error
    })
    // Until the variant is stored, requests share the rendered bytes.
    const stored = rendered.then(
      async (result) => {
        await store(item, variant, result)
        renders.delete(key)
      },
      () => undefined,
    )
    const render: Render = { rendered, stored, hasResult: false }
    renders.set(key, render)
    return render
  }

  async function renderOnce(item: Item, variant: Variant, opened: OpenBlob): Promise<Rendered> {
    const running = renders.get(keyOf(item, variant))
    if (running === undefined) return start(item, variant, opened, false).rendered
    try {
      return await running.rendered
    } catch (error) {
      if (!(error instanceof PictureTaskPreempted)) throw error
      return renderOnce(item, variant, opened)
    }
  }

  /**
   * A variant is served only while the bytes of its picture are (docs/interface.md V7). If they are in a file, the read of the variant checks
   * that too.
   */
  async function openStored(item: Item, variant: Variant, wholeUpTo: number): Promise<OpenVariant | null> {
    const isFile = !item.isDamaged && item.contentId === null
    if (!isFile) await openAndClose(item)
    try {
      return await blobs.variants.open(
        item.id,
        variant.key,
        isFile ? { wholeUpTo, pictureSize: item.size } : { wholeUpTo },
      )
    } catch (error) {
      // On a read-only disk the database of variants cannot be opened: they are rendered again.
      if (error instanceof Fault || storageCauseOf(error) === null) throw error
      parts.onStoreFailure(item.id, error)
      return null
    }
  }

  async function openAndClose(item: Item): Promise<OpenBlob> {
    const opened = await openBytes(item)
    await opened.close()
    return opened
  }

  function requireTypeWithVariants(contentType: string): void {
    const tool = toolFor(contentType)
    if (tool === null ? isDecoded(contentType) : tools.has(tool)) return
    const reason =
      tool === null
        ? 'Variants exist for JPEG, PNG, GIF, WebP, TIFF and AVIF, and for videos, PDF and HEIC where their programs are installed.'
        : `Its variants need ${tool}, which is not installed.`
    throw unavailable(`This item is ${contentType}. ${reason}`)
  }

  return {
    async open(item, variant, { wholeUpTo = 0, wait = null } = {}) {
      requireTypeWithVariants(item.contentType)
      const stored = await openStored(item, variant, wholeUpTo)
      if (stored !== null) return stored
      const picture = await openAndClose(item)
      await renderer.requireRenderable(item)
      const { bytes } = await within(wait, renderOnce(item, variant, picture))
      if ((await catalog.item(item.id)) === null) throw itemUnknown()
      return openMemoryBlob(bytes)
    },

    async renderAhead(item, variant) {
      requireTypeWithVariants(item.contentType)
      if (!hasRoom()) return
      const stored = await openStored(item, variant, 0)
      if (stored !== null) return stored.close()
      const picture = await openAndClose(item)
      await renderer.requireRenderable(item)
      if (renders.has(keyOf(item, variant))) return
      const render = start(item, variant, picture, true)
      await render.rendered
      await render.stored
    },

    async settled() {
      // The others may still be downloading their picture.
      const finishing = () => [...renders.values()].filter(({ hasResult }) => hasResult)
      while (finishing().length > 0) await Promise.all(finishing().map(({ stored }) => stored))
    },
  }
}

/** Throws VariantPending after the time; a later error is that of the next request. */
async function within(wait: VariantWait, rendering: Promise<Rendered>): Promise<Rendered> {
  if (wait === null) return rendering
  const { promise: expired, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new VariantPending('the variant is not rendered yet')),
    Math.max(wait * 1000, leastWait),
  )
  try {
    return await Promise.race([rendering, expired])
  } finally {
    clearTimeout(timer)
  }
}
