/** Types that browsers display and that cannot contain scripts. SVG can contain scripts, so it is not included. */
const inlineTypes: ReadonlySet<string> = new Set([
  'image/apng',
  'image/avif',
  'image/bmp',
  'image/gif',
  'image/heic',
  'image/heic-sequence',
  'image/heif',
  'image/heif-sequence',
  'image/jpeg',
  'image/jxl',
  'image/png',
  'image/tiff',
  'image/webp',
  'image/x-icon',
  'audio/aac',
  'audio/aiff',
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'audio/x-caf',
  'audio/x-m4a',
  'video/3gpp',
  'video/3gpp2',
  'video/matroska',
  'video/mp4',
  'video/mpeg',
  'video/ogg',
  'video/quicktime',
  'video/webm',
  'video/x-m4v',
  'application/pdf',
  'text/plain',
])

/** Whether the service lets browsers display files of this type; others are downloads (docs/interface.md B5). */
export const isInlineType = (contentType: string): boolean => inlineTypes.has(essenceOf(contentType))

/** `type/subtype` of a media type, in lower case and without parameters (RFC 9110, section 8.3.1). */
export const essenceOf = (contentType: string): string =>
  contentType.replace(/;.*$/s, '').trim().toLowerCase()
