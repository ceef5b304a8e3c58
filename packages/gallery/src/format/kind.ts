export type Kind = 'picture' | 'video' | 'audio' | 'pdf' | 'text' | 'archive' | 'file'

const archives = /(?:^|[/+.-])(?:zip|gzip|x-tar|x-bzip2?|x-xz|zstd|x-7z-compressed|vnd\.rar|x-rar)/

/** What sort of thing a content type is, for icons and viewers. */
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

/** A few letters for an icon: the extension of the name, or the second half of the type. */
export function shortType(filename: string | null, contentType: string): string {
  const extension = /\.([a-z0-9]{1,5})$/i.exec(filename ?? '')?.[1]
  const subtype = contentType
    .split(';', 1)[0]
    ?.split('/')[1]
    ?.replace(/^(?:x-|vnd\.)/, '')
  return (extension ?? (subtype === 'octet-stream' ? '' : (subtype ?? ''))).slice(0, 5).toUpperCase()
}
