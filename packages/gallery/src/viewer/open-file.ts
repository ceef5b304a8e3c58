import type { Media } from '@mediabucket/client'
import { type FileAccess, follow } from '../service/file-access.ts'

/** Opens a file in a new tab, without its URL in the address bar and in the history. Rejects if it is no PDF or plain text, or cannot be loaded. */
export async function openFile(files: Pick<FileAccess, 'bytes'>, media: Media): Promise<void> {
  const response = await files.bytes(media, {})
  const type = documentType(response.headers.get('content-type') ?? '')
  if (type === null) {
    await response.body?.cancel()
    throw new Error('The file is neither a PDF nor plain text')
  }
  const blob = await response.blob()
  const copy = URL.createObjectURL(blob.slice(0, blob.size, type))
  follow(copy, { target: '_blank', rel: 'noopener' })
  setTimeout(() => URL.revokeObjectURL(copy), 60_000)
}

/** The document has the gallery's origin, so its type must be one that runs no script there, whatever the response states. */
function documentType(contentType: string): 'application/pdf' | 'text/plain;charset=utf-8' | null {
  switch (contentType.split(';', 1)[0]?.trim().toLowerCase()) {
    case 'application/pdf':
      return 'application/pdf'
    case 'text/plain':
      return 'text/plain;charset=utf-8'
    default:
      return null
  }
}
