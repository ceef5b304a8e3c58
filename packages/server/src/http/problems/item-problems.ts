import type { ProblemKinds } from './problem-kind.ts'

/** Problems of stored items, their bytes and their variants. */
export const itemProblems = {
  'media-unknown': {
    status: 404,
    title: 'The item does not exist',
    cause:
      'No item has this id, the item was deleted or belongs to another bucket, or the extension is not that of the item. Bytes of a private bucket that are requested without a token of the bucket or a signed URL get the same response.',
    cure: 'List the bucket to see its items. For bytes of a private bucket, send a token of the bucket, or create a signed URL with `POST /api/media/{id}/links`.',
  },
  'signature-invalid': {
    status: 403,
    title: 'The signature of the URL is invalid',
    cause: 'The URL was changed after it was signed, or the key that signed it was removed.',
    cure: 'Use the URL unchanged, without further parameters, or ask for a new link.',
  },
  'link-expired': {
    status: 403,
    title: 'The link has expired',
    cause: 'The time until which the signed URL was valid has passed.',
    cure: 'Ask for a new link. `POST /api/media/{id}/links` creates one.',
  },
  'destination-refused': {
    status: 403,
    title: 'Bytes are not served as code',
    cause:
      'A page loads an item as a script, style sheet, worker, module or manifest, or registers a service worker.',
    cure: 'Serve code from another web server. Pages can load pictures, audio, video and downloads from this service.',
  },
  'precondition-failed': {
    status: 412,
    title: 'A precondition failed',
    cause:
      'The current bytes, or the current state of the item, do not meet the condition of `If-Match` or `If-Unmodified-Since`.',
    cure: 'Fetch the item again and repeat the request with its current `ETag`.',
  },
  'range-unsatisfiable': {
    status: 416,
    title: 'The range is outside the file',
    cause: 'The requested range begins after the last byte.',
    cure: 'Request bytes below the size that `Content-Range` states.',
  },
  'variant-unknown': {
    status: 400,
    title: 'The variant does not exist',
    cause: 'The query parameter `variant` is not the name of a variant, or is repeated.',
    cure: 'Send `variant=thumb`, `variant=medium` or another name of MEDIABUCKET_VARIANTS, or leave it out for the original bytes.',
  },
  'variant-unavailable': {
    status: 404,
    title: 'The item has no variants',
    cause:
      'Variants exist for JPEG, PNG, GIF, WebP, TIFF and AVIF, and for videos, PDF and HEIC if the programs for them are installed. The item has another type, is damaged, or exceeds the limits of pixels, time or memory; or this machine cannot render variants.',
    cure: 'Show an icon instead, or fetch the bytes without `variant`.',
  },
  'variants-busy': {
    status: 503,
    title: 'Too many variants are being rendered',
    cause: 'The variant is not rendered yet, and the queue of variants to render is full.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'bytes-missing': {
    status: 500,
    title: 'The bytes of this item are damaged or missing',
    cause: 'The item is listed, but its stored bytes are missing, damaged or of another length.',
    cure: 'Send the operator the `instance` of the response; the bytes must be restored from a backup.',
  },
} satisfies ProblemKinds
