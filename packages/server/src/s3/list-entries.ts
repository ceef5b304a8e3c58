import { type ChecksumAlgorithm, checksumAlgorithms } from '../core/checksums.ts'
import { formatTimestamp } from '../core/times.ts'
import type { ListedObject } from '../objects/object-operations.ts'
import type { ObjectChecksum } from '../objects/object-types.ts'
import { owner } from './s3-context.ts'
import { escapeXml, XmlText } from './xml.ts'

const ownerXml = `<Owner><ID>${owner.ID}</ID><DisplayName>${owner.DisplayName}</DisplayName></Owner>`

const checksumXmlOf = (algorithm: ChecksumAlgorithm, type: ObjectChecksum['type']) =>
  `<ChecksumAlgorithm>${algorithm}</ChecksumAlgorithm><ChecksumType>${type}</ChecksumType>`

const checksumXmls = {
  FULL_OBJECT: new Map(checksumAlgorithms.map((name) => [name, checksumXmlOf(name, 'FULL_OBJECT')])),
  COMPOSITE: new Map(checksumAlgorithms.map((name) => [name, checksumXmlOf(name, 'COMPOSITE')])),
}

/**
 * The elements of an object in a list, as xmlOf writes them. It makes no JavaScript object for an element, because a list has 1,000 entries
 * (`npm run bench -- lists`). `key` is the key as the client has asked for it.
 */
export function entryText(
  key: string,
  { etag, lastModified, size, checksum }: Omit<ListedObject, 'key'>,
  hasOwner: boolean,
): XmlText {
  const checksumXml = checksum === null ? '' : checksumXmls[checksum.type].get(checksum.algorithm)
  const ownerOrNone = hasOwner ? ownerXml : ''
  return new XmlText(
    `<Key>${escapeXml(key)}</Key><LastModified>${formatTimestamp(lastModified)}</LastModified><ETag>&quot;${escapeXml(etag)}&quot;</ETag>${checksumXml}<Size>${size}</Size><StorageClass>STANDARD</StorageClass>${ownerOrNone}`,
  )
}
