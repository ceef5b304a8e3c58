/** Names of files and folders that operating systems create, in lower case. */
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

/** Whether a path is, or is inside, a file or folder that an operating system created. */
export const isSystemFile = (path: string): boolean =>
  path.split('/').some((segment) => segment.startsWith('._') || names.has(segment.toLowerCase()))
