/** The programs that make pictures of types that the decoder of the service does not read, and their Debian packages. */
export const toolPackages = {
  ffmpeg: 'ffmpeg',
  pdftoppm: 'poppler-utils',
  'heif-convert': 'libheif-examples',
} as const

export type PictureTool = keyof typeof toolPackages

/**
 * The demuxers of ffmpeg for stored types. ffmpeg uses only this one, so a file that is a playlist or a script of another demuxer, which
 * could name other files or URLs, is not read as such.
 */
const demuxers: ReadonlyMap<string, string> = new Map([
  ['video/3gpp', 'mov'],
  ['video/3gpp2', 'mov'],
  ['video/mp4', 'mov'],
  ['video/quicktime', 'mov'],
  ['video/x-m4v', 'mov'],
  ['video/matroska', 'matroska'],
  ['video/webm', 'matroska'],
  ['video/x-matroska', 'matroska'],
  ['video/ogg', 'ogg'],
  ['video/MP1S', 'mpeg'],
  ['video/MP2P', 'mpeg'],
  ['video/mpeg', 'mpeg'],
  ['video/mp2t', 'mpegts'],
  ['video/vnd.avi', 'avi'],
  ['video/x-msvideo', 'avi'],
  ['video/x-flv', 'flv'],
  ['video/x-ms-asf', 'asf'],
])

/** Undefined if ffmpeg is not used for the type. */
export const demuxerFor = (contentType: string): string | undefined => demuxers.get(contentType)

const tools: ReadonlyMap<string, PictureTool> = new Map([
  ['application/pdf', 'pdftoppm'],
  ['image/heic', 'heif-convert'],
  ['image/heif', 'heif-convert'],
])

/** Null if the type needs no program, or none makes pictures of it. */
export const toolFor = (contentType: string): PictureTool | null =>
  demuxers.has(contentType) ? 'ffmpeg' : (tools.get(contentType) ?? null)
