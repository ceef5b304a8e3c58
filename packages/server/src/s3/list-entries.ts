import { type ChecksumAlgorithm, checksumAlgorithms } from '../core/checksums.ts'
import { formatTimestamp } from '../core/times.ts'
import type { ListedObject } from '../objects/object-operations.ts'
import { owner } from './s3-context.ts'
import { escapeXml, XmlText } from './xml.ts'

const ownerXml = `<Owner><ID>${owner.ID}</ID><DisplayName>${owner.DisplayName}</DisplayName></Owner>`

const storageClassXml = '</Size><StorageClass>STANDARD</StorageClass>'
const listedTailXml = `${storageClassXml}${ownerXml}`

/** What follows the ETag of an object without a checksum, and with each kind of checksum, up to its size. */
const sizeXml = '&quot;</ETag><Size>'
const checksumXml = (algorithm: ChecksumAlgorithm, type: string) =>
  `&quot;</ETag><ChecksumAlgorithm>${algorithm}</ChecksumAlgorithm><ChecksumType>${type}</ChecksumType><Size>`
const checksumXmls = {
  FULL_OBJECT: new Map(checksumAlgorithms.map((name) => [name, checksumXml(name, 'FULL_OBJECT')])),
  COMPOSITE: new Map(checksumAlgorithms.map((name) => [name, checksumXml(name, 'COMPOSITE')])),
}

/**
 * The elements of an object in a list, as xmlOf writes them, without an object for each and of few parts: a list has 1,000 of them
 * (`npm run bench -- lists`). `key` is the key as the client has asked for it.
 */
export function entryText(
  key: string,
  { etag, lastModified, size, checksum }: Omit<ListedObject, 'key'>,
  hasOwner: boolean,
): XmlText {
  const beforeSize = checksum === null ? sizeXml : checksumXmls[checksum.type].get(checksum.algorithm)
  const tail = hasOwner ? listedTailXml : storageClassXml
  return new XmlText(
    `<Key>${escapeXml(key)}</Key><LastModified>${formatTimestamp(lastModified)}</LastModified><ETag>&quot;${escapeXml(etag)}${beforeSize}${size}${tail}`,
  )
}
