import { tusVersion } from './tus-version.ts'
import { checksumAlgorithms } from './upload-checksum.ts'

/**
 * tus 1.0.0: each extension that the server supports MUST be announced; creation-with-upload "depends directly on the
 * Creation extension".
 */
const extensions = [
  'creation',
  'creation-with-upload',
  'creation-defer-length',
  'expiration',
  'termination',
  'checksum',
]

/** What the response to OPTIONS carries, which needs neither token nor version. `maxFileSize` is in bytes. */
export const tusOptionsHeaders = (maxFileSize: number): Readonly<Record<string, string>> => ({
  // tus 1.0.0, OPTIONS: "A successful response […] MUST contain the Tus-Version header."
  'tus-version': tusVersion,
  'tus-resumable': tusVersion,
  // tus 1.0.0, Core: "The Tus-Extension response header MUST be a comma-separated list of the extensions".
  'tus-extension': extensions.join(','),
  // tus 1.0.0, Core: "The Tus-Max-Size response header MUST be a non-negative integer indicating the maximum allowed size".
  'tus-max-size': String(maxFileSize),
  // tus 1.0.0, Checksum: "The Tus-Checksum-Algorithm header MUST be included in the response to an OPTIONS request."
  'tus-checksum-algorithm': checksumAlgorithms.join(','),
})
