export type Kind = 'picture' | 'video' | 'audio' | 'pdf' | 'text' | 'archive' | 'file'

const archives = /(?:^|[/+.-])(?:zip|gzip|x-tar|x-bzip2?|x-xz|zstd|x-7z-compressed|vnd\.rar|x-rar)/

/** The kind of a content type, which selects the icon and the viewer. */
export function kindOf(contentType: string): Kind {
  const type = contentType.toLowerCase().split(';', 1)[0]?.trim() ?? ''
  if (type.startsWith('image/')) return 'picture'
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('audio/')) return 'audio'
  if (type === 'application/pdf') return 'pdf'
  if (type.startsWith('text/') || /[/+](?:json|xml|yaml)$/.test(type)) return 'text'
  if (archives.test(type)) return 'archive'
  return 'file'
}

/** The label of a file's icon: the extension of its name, or else the subtype of its content type. */
export function shortType(filename: string | null, contentType: string): string {
  const extension = /\.([a-z0-9]{1,5})$/i.exec(filename ?? '')?.[1]
  const subtype = contentType
    .split(';', 1)[0]
    ?.split('/')[1]
    ?.replace(/^(?:x-|vnd\.)/, '')
  return (extension ?? (subtype === 'octet-stream' ? '' : (subtype ?? ''))).slice(0, 5).toUpperCase()
}
