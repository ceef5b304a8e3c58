/** What operating systems leave in folders: files by name, and folders whose content nobody put there. */
const names = new Set([
  '.ds_store',
  '.localized',
  '.fseventsd',
  '.spotlight-v100',
  '.temporaryitems',
  '.trashes',
  '.directory',
  '__macosx',
  'thumbs.db',
  'ehthumbs.db',
  'desktop.ini',
  '$recycle.bin',
  'system volume information',
  'icon\r',
])

/** Whether a path is, or is inside, something that only an operating system needs. */
export const isSystemFile = (path: string): boolean =>
  path.split('/').some((segment) => segment.startsWith('._') || names.has(segment.toLowerCase()))
