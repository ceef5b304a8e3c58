import { sentTextType } from '../../core/charset.ts'
import { essenceOf, isInlineType } from '../../core/media-type.ts'

/** How bytes of a stored type are sent. */
export interface Delivery {
  readonly contentType: string
  readonly disposition: 'inline' | 'attachment'
  /** Whether `Content-Security-Policy` has `sandbox`. */
  readonly isSandboxed: boolean
}

/** docs/interface.md B5, B6. PDF has no sandbox, which breaks its viewer. */
export function deliveryOf(contentType: string): Delivery {
  const type = essenceOf(contentType)
  return {
    contentType: type.startsWith('text/') ? sentTextType(contentType) : contentType,
    disposition: isInlineType(type) ? 'inline' : 'attachment',
    isSandboxed: type !== 'application/pdf',
  }
}
