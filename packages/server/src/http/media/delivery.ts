import { essenceOf, isInlineType } from '../../core/media-type.ts'

/** How bytes of a stored type are sent. `sandboxed` asks for `Content-Security-Policy: sandbox`. */
export interface Delivery {
  readonly contentType: string
  readonly disposition: 'inline' | 'attachment'
  readonly sandboxed: boolean
}

/** docs/interface.md B5, B6. Only PDF goes without a sandbox, which breaks its viewer; text is taken to be UTF-8. */
export function deliveryOf(contentType: string): Delivery {
  const type = essenceOf(contentType)
  return {
    contentType: type.startsWith('text/') ? `${type}; charset=utf-8` : contentType,
    disposition: isInlineType(type) ? 'inline' : 'attachment',
    sandboxed: type !== 'application/pdf',
  }
}
