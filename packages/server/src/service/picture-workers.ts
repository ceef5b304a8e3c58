import { readFileSync } from 'node:fs'
import { version } from '../core/processes.ts'
import { createVariantList } from '../core/variants.ts'
import { type OpenBytes, openBytesOperation } from '../downloads/bytes-cache.ts'
import { createPictureWorkers } from '../pictures/picture-workers.ts'
import {
  type MeasurePicture,
  measurePictureOperation,
  type RemoveMetadata,
  removeMetadataOperation,
} from '../pictures/received-pictures.ts'
import { createRenderAhead } from '../pictures/render-ahead.ts'
import { type InstalledTools, missingPackages, printedVersion } from '../pictures/tools.ts'
import { createVariants, type Variants } from '../pictures/variants.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { OnStored } from '../uploads/commit.ts'
import type { FreeSpace } from '../uploads/space.ts'
import type { OpenData, StartContext } from './data.ts'

/** Variants that wait to be rendered, and those of videos, PDF and HEIC files in a queue of their own; all workers share it. */
const variantQueue = 500

/** Larger pictures have no variants. Pixels. */
const maxPixels = 200e6

/** Milliseconds that a request for a variant waits for a free worker. After that, the response is 503. */
const variantQueueTimeout = 30_000

/** The niceness of thumbnail workers, so that they do not slow down listings and uploads. 0 to 19. */
const variantNiceness = 10

/** Starts the processes that generate variants, and creates the operations that open bytes and variants, and render variants ahead. */
export function startThumbnailWorkers(
  { config, log, metrics, closers }: StartContext,
  {
    catalog,
    blobs,
    space,
    tools,
  }: {
    readonly catalog: Catalog
    readonly blobs: BlobStore
    readonly space: FreeSpace
    readonly tools: InstalledTools
  },
): { openBytes: OpenBytes; openVariant: Variants['open']; renderAhead: OnStored | null } {
  const openBytes = openBytesOperation({ catalog, blobs })
  const limits = {
    queue: Math.ceil(variantQueue / config.workers),
    queueTimeout: variantQueueTimeout,
    timeout: config.variantTimeout,
    memory: config.variantMemory,
    niceness: variantNiceness,
  }
  const workers = createPictureWorkers({ ...limits, workers: config.variantProcesses })
  // Workers that start programs, such as ffmpeg, have a queue of their own, so that videos do not delay the thumbnails of pictures.
  const toolWorkers = createPictureWorkers({
    ...limits,
    // At least two, so that no bucket has all of them.
    workers: Math.min(config.variantProcesses, Math.max(2, Math.ceil(config.variantProcesses / 2))),
    startPrograms: true,
  })
  const missing = missingPackages(tools)
  if (missing.length > 0)
    log.info(`for pictures of videos, PDF and HEIC files, install these packages too: ${missing.join(' ')}`)
  const pictureParts = { catalog, workers, toolWorkers, tools, maxPixels }
  const variants = createVariants({
    ...pictureParts,
    blobs,
    openBytes,
    async rendererOf(tool) {
      const program = tool === null ? undefined : tools.get(tool)
      const printed = tool && program ? await printedVersion(tool, program) : ''
      const { variantTimeout, variantMemory } = config
      return [version, decoderVersion(), printed, variantTimeout, variantMemory, maxPixels].join('\n')
    },
    hasRoom: space.hasRoom,
    onRendered: ({ variant, seconds, outcome }) =>
      metrics.variantSeconds.observe({ variant: variant.name, outcome }, seconds),
    onOverLimits: (id, err) =>
      log.warn(
        { id, err },
        'a picture exceeded the limits of a thumbnail worker; it has no variants for a while',
      ),
    onStoreFailure: (id, err) => log.warn({ id, err }, 'a variant was generated but could not be stored'),
    onLostFailure: (id, err) => log.warn({ id, err }, 'a failed variant could not be stored or read'),
    onUnsupported: (reason) => log.error({ reason }, 'variants cannot be generated on this machine'),
  })
  closers.add('variants', () => variants.settled())
  closers.add('the thumbnail workers', () => {
    workers.close()
    toolWorkers.close()
  })
  // The gallery requests this variant in this format.
  const thumb = createVariantList(config.variants).find('thumb', 'avif')
  const ahead = createRenderAhead({
    ...pictureParts,
    render: async (item) => thumb && variants.renderAhead(item, thumb),
    onFailure: (id, err) =>
      log.warn({ id, err }, 'a variant could not be generated ahead of its first request'),
  })
  metrics.watchRenderAhead(() => ahead.length)
  // What is added last is closed first: the queue before the workers.
  closers.add('the queue of variants', ahead.stop)
  return {
    openBytes,
    openVariant: variants.open,
    renderAhead: config.renderAhead ? ahead.add : null,
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

/**
 * Dimension workers read only the header of a picture. The upload waits for the result, so the two workers have normal priority. Durations
 * are milliseconds, memory is bytes.
 */
const dimensionLimits = {
  workers: 2,
  queue: 1_000,
  queueTimeout: 5_000,
  timeout: 2_000,
  memory: 400_000_000,
  niceness: 0,
}

/** Starts the processes that read the width and height of uploaded pictures. */
export function startDimensionWorkers(
  { closers }: StartContext,
  { blobs }: Pick<OpenData, 'blobs'>,
): MeasurePicture {
  const workers = createPictureWorkers(dimensionLimits)
  closers.add('the dimension workers', () => workers.close())
  return measurePictureOperation({ blobs, workers })
}

/**
 * Metadata workers read the structure of a file: the tables of a video, all bytes of a JPEG picture. The file may be in a remote store. The
 * upload waits for the result, so the two workers have normal priority. Durations are milliseconds, memory is bytes.
 */
const metadataLimits = {
  workers: 2,
  queue: 1_000,
  queueTimeout: 60_000,
  timeout: 60_000,
  memory: 600_000_000,
  niceness: 0,
}

/** Comparison workers decode all pixels of a picture twice, and read all bytes of a video twice. */
const comparisonLimits = { ...metadataLimits, timeout: 120_000, startPrograms: true }

/** Starts the processes that find the metadata of uploaded files, and those that compare the files before and after its removal. */
export function startMetadataWorkers(
  { closers }: StartContext,
  { blobs, tools }: Pick<OpenData, 'blobs'> & { readonly tools: InstalledTools },
): RemoveMetadata {
  const workers = createPictureWorkers(metadataLimits)
  const comparisonWorkers = createPictureWorkers(comparisonLimits)
  closers.add('the metadata workers', () => {
    workers.close()
    comparisonWorkers.close()
  })
  return removeMetadataOperation({ blobs, workers, comparisonWorkers, tools, now: Date.now })
}
