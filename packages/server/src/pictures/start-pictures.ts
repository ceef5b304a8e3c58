import { readFileSync } from 'node:fs'
import type { BaseLogger } from 'pino'
import { BucketVariants } from '../core/bucket-pictures.ts'
import type { VariantSize } from '../core/variant-sizes.ts'
import type { Crop } from '../core/variants.ts'
import { version } from '../core/version.ts'
import type { Metrics } from '../http/metrics.ts'
import type { BlobStore, OpenBlob } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'
import { hasLittleMemory } from '../storage/memory.ts'
import { PictureWorkers } from './picture-workers.ts'
import {
  type MeasurePicture,
  measurePictureOperation,
  type ReadTaken,
  type RemoveMetadata,
  readTakenOperation,
  removeMetadataOperation,
} from './received-pictures.ts'
import { RenderAhead } from './render-ahead.ts'
import { Variants } from './rendered-variants.ts'
import { findTools, type InstalledTools, missingPackages, printedVersion } from './tools.ts'

/** Larger pictures have no variants. Pixels. */
const maxPixels = 200e6

/**
 * Variants that wait to be rendered, and those of videos, PDF and HEIC files in a queue of their own; all workers share it. A
 * request that waits longer for a free process is answered with 503. The niceness keeps listings and uploads fast.
 */
const variantLimits = { queue: 500, queueTimeout: 30_000, niceness: 10 }

/** Reads only the header of a picture. The upload waits for the result, so the two processes have normal priority. */
const measureLimits = {
  workers: hasLittleMemory ? 1 : 2,
  queue: 1_000,
  queueTimeout: 5_000,
  timeout: 2_000,
  memory: 400_000_000,
  niceness: 0,
}

/**
 * Reads the structure of a file: the tables of a video, all bytes of a JPEG picture. The file may be in a remote store. The upload waits
 * for the result, so the two processes have normal priority.
 */
const metadataLimits = {
  workers: hasLittleMemory ? 1 : 2,
  queue: 1_000,
  queueTimeout: 60_000,
  timeout: 60_000,
  memory: 600_000_000,
  niceness: 0,
}

/** Decodes all pixels of a picture twice, and reads all bytes of a video twice. */
const comparisonLimits = { ...metadataLimits, timeout: 120_000, startPrograms: true }

/** Durations are milliseconds, memory is bytes. */
interface PictureSettings {
  /** The PATH, in which the programs are found. */
  readonly searchPath: string
  readonly variants: readonly VariantSize[]
  readonly crop: Crop
  /** Of this worker of the service. */
  readonly variantProcesses: number
  readonly variantTimeout: number
  readonly variantMemory: number
  /** The number of workers of the service. */
  readonly workers: number
}

/** What the service does with pictures, in processes of their own. */
export interface Pictures {
  readonly tools: InstalledTools
  readonly measure: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly readTaken: ReadTaken
  readonly openVariant: Variants['open']
  readonly renderAhead: RenderAhead['add']
  /** Ends the processes, and waits until what they have rendered is stored. */
  close(): Promise<void>
}

/** Prepares the processes, which start when they are needed. */
export function startPictures(
  settings: PictureSettings,
  parts: {
    readonly catalog: Catalog
    readonly blobs: BlobStore
    readonly openBytes: (item: Item) => Promise<OpenBlob>
    /** False if the disk is too full to store variants. */
    readonly hasRoom: () => boolean
    readonly log: Pick<BaseLogger, 'info' | 'warn' | 'error'>
    readonly metrics: Metrics
  },
): Pictures {
  const { catalog, blobs, openBytes, hasRoom, log, metrics } = parts
  const lists = new BucketVariants(settings)
  const tools = findTools(settings.searchPath)
  const missing = missingPackages(tools)
  if (missing.length > 0)
    log.info(`for pictures of videos, PDF and HEIC files, install these packages too: ${missing.join(' ')}`)

  const { variantProcesses, variantTimeout, variantMemory } = settings
  const limits = {
    ...variantLimits,
    queue: Math.ceil(variantLimits.queue / settings.workers),
    timeout: variantTimeout,
    memory: variantMemory,
  }
  const pools = {
    dimensions: new PictureWorkers(measureLimits),
    metadata: new PictureWorkers(metadataLimits),
    comparisons: new PictureWorkers(comparisonLimits),
    variants: new PictureWorkers({ ...limits, workers: variantProcesses }),
    // Those that start programs, such as ffmpeg, have a queue of their own, so that videos do not delay the thumbnails of pictures.
    toolVariants: new PictureWorkers({
      ...limits,
      // At least two, so that no bucket has all of them.
      workers: Math.min(variantProcesses, Math.max(2, Math.ceil(variantProcesses / 2))),
      startPrograms: true,
    }),
  }

  const rendering = { catalog, workers: pools.variants, toolWorkers: pools.toolVariants, tools, maxPixels }
  // Buckets can have any number of names.
  const labelOf = (name: string) => (lists.service.names.includes(name) ? name : 'own')
  const variants = new Variants({
    ...rendering,
    // The rest is left for the first frame.
    animationTime: variantTimeout / 2,
    blobs,
    openBytes,
    async rendererOf(tool) {
      const program = tool === null ? undefined : tools.get(tool)
      const printed = tool && program ? await printedVersion(tool, program) : ''
      return [version, decoderVersion(), printed, variantTimeout, variantMemory, maxPixels].join('\n')
    },
    hasRoom,
    onRendered: ({ variant, seconds, outcome }) =>
      metrics.variantSeconds.observe({ variant: labelOf(variant.name), outcome }, seconds),
    onOverLimits: (id, err) =>
      log.warn(
        { id, err },
        'a picture exceeded the limits of a thumbnail worker; it has no variants for a while',
      ),
    onStoreFailure: (id, err) => log.warn({ id, err }, 'a variant was generated but could not be stored'),
    onLostFailure: (id, err) => log.warn({ id, err }, 'a failed variant could not be stored or read'),
    onUnsupported: (reason) => log.error({ reason }, 'variants cannot be generated on this machine'),
  })
  const ahead = new RenderAhead({
    ...rendering,
    async render(item) {
      // The gallery requests this variant in this format.
      const thumb = lists.of(item.pictures).find('thumb', 'avif', item.focus)
      if (thumb) await variants.renderAhead(item, thumb)
    },
    onFailure: (id, err) =>
      log.warn({ id, err }, 'a variant could not be generated ahead of its first request'),
  })
  metrics.watchRenderAhead(() => ahead.length)

  return {
    tools,
    measure: measurePictureOperation({ blobs, workers: pools.dimensions }),
    removeMetadata: removeMetadataOperation({
      blobs,
      workers: pools.metadata,
      comparisonWorkers: pools.comparisons,
      tools,
      now: Date.now,
    }),
    readTaken: readTakenOperation({ blobs, now: Date.now }),
    openVariant: (item, variant, options) => variants.open(item, variant, options),
    renderAhead: (bucketId, item) => ahead.add(bucketId, item),
    async close() {
      // The queue before the processes that it uses.
      ahead.stop()
      for (const pool of Object.values(pools)) pool.close()
      await variants.idle()
    },
  }
}

/** The version of the library that decodes pictures, which only other processes load; empty where it is not installed. */
function decoderVersion(): string {
  try {
    return readFileSync(new URL('../package.json', import.meta.resolve('sharp')), 'utf8')
  } catch {
    return ''
  }
}
