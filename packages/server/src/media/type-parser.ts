import { FileTypeParser } from 'file-type'

interface CheckOptions {
  readonly offset?: number
  readonly mask?: readonly number[]
  readonly encoding?: string
}

declare module 'file-type' {
  interface FileTypeParser {
    readonly buffer: Uint8Array
    check(signature: readonly number[], options?: CheckOptions): boolean
    checkString(signature: string, options?: CheckOptions): boolean
  }
}

/**
 * The sniffer, without most of its work: it compares nearly two hundred signatures and makes an array for each of them,
 * which took a tenth of an upload's time and two fifths of its garbage. Nearly all of them differ in their first byte.
 */
export class TypeParser extends FileTypeParser {
  override check(signature: readonly number[], options?: CheckOptions): boolean {
    if (options?.mask === undefined && signature[0] !== this.buffer[options?.offset ?? 0]) return false
    return super.check(signature, options)
  }

  override checkString(signature: string, options?: CheckOptions): boolean {
    if (options?.encoding === undefined && signature.charCodeAt(0) !== this.buffer[options?.offset ?? 0])
      return false
    return super.checkString(signature, options)
  }
}
