import type { Scope, ServiceScope } from '../core/token-rules.ts'
import type { RequestKind } from '../http/usage-log.ts'
import type { RequestTarget } from './request-target.ts'

/** What an operation needs. */
interface OperationTraits {
  /** Of the whole service, or of the bucket that the request names. */
  readonly on: 'service' | 'bucket'
  /** Null for none. */
  readonly scope: ServiceScope | Scope | null
  readonly kind: RequestKind
  readonly changes: boolean
}

const inService = (scope: ServiceScope | null, changes: boolean) =>
  ({ on: 'service', scope, kind: 'other', changes }) as const
const reads = (kind: RequestKind) => ({ on: 'bucket', scope: 'media:read', kind, changes: false }) as const
const writes = (kind: RequestKind) => ({ on: 'bucket', scope: 'media:write', kind, changes: true }) as const
const deletes = { on: 'bucket', scope: 'media:delete', kind: 'other', changes: true } as const

/** The operations of the S3 protocol that the service implements (docs/interface.md SP4). */
const operations = {
  ListBuckets: inService(null, false),
  CreateBucket: inService('buckets:manage', true),
  DeleteBucket: inService('buckets:manage', true),
  HeadBucket: { ...reads('other'), scope: null },
  GetBucketLocation: { ...reads('other'), scope: null },
  GetBucketVersioning: { ...reads('other'), scope: null },
  PutBucketVersioning: writes('other'),
  GetBucketAcl: reads('other'),
  PutBucketAcl: writes('other'),
  ListObjects: reads('list'),
  ListObjectsV2: reads('list'),
  ListObjectVersions: reads('list'),
  ListMultipartUploads: reads('list'),
  ListParts: reads('list'),
  GetObject: reads('download'),
  HeadObject: reads('download'),
  GetObjectAttributes: reads('other'),
  GetObjectAcl: reads('other'),
  GetObjectTagging: reads('other'),
  PutObject: writes('upload'),
  CopyObject: writes('upload'),
  PutObjectAcl: writes('other'),
  CreateMultipartUpload: writes('other'),
  UploadPart: writes('upload'),
  UploadPartCopy: writes('upload'),
  CompleteMultipartUpload: writes('upload'),
  AbortMultipartUpload: writes('other'),
  DeleteObject: deletes,
  DeleteObjects: deletes,
} as const satisfies Readonly<Record<string, OperationTraits>>

export type OperationName = keyof typeof operations

export const traitsOf = (name: OperationName): OperationTraits => operations[name]

/** A parameter that selects another operation, and the name of what it is about. */
const subresources: Readonly<Record<string, string>> = {
  abac: 'Abac',
  accelerate: 'AccelerateConfiguration',
  acl: 'Acl',
  analytics: 'AnalyticsConfiguration',
  annotation: 'Annotation',
  attributes: 'Attributes',
  cors: 'Cors',
  encryption: 'Encryption',
  'intelligent-tiering': 'IntelligentTieringConfiguration',
  inventory: 'InventoryConfiguration',
  'legal-hold': 'LegalHold',
  lifecycle: 'LifecycleConfiguration',
  location: 'Location',
  logging: 'Logging',
  metadataAnnotationTable: 'MetadataAnnotationTableConfiguration',
  metadataConfiguration: 'MetadataConfiguration',
  metadataInventoryTable: 'MetadataInventoryTableConfiguration',
  metadataJournalTable: 'MetadataJournalTableConfiguration',
  metadataTable: 'MetadataTableConfiguration',
  metrics: 'MetricsConfiguration',
  notification: 'NotificationConfiguration',
  'object-lock': 'LockConfiguration',
  ownershipControls: 'OwnershipControls',
  policy: 'Policy',
  policyStatus: 'PolicyStatus',
  publicAccessBlock: 'PublicAccessBlock',
  renameObject: 'Rename',
  replication: 'Replication',
  requestPayment: 'RequestPayment',
  restore: 'Restore',
  retention: 'Retention',
  select: 'SelectContent',
  session: 'Session',
  tagging: 'Tagging',
  torrent: 'Torrent',
  versioning: 'Versioning',
  versions: 'Versions',
  website: 'Website',
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'Get',
  HEAD: 'Head',
  PUT: 'Put',
  POST: 'Post',
  DELETE: 'Delete',
}

const ofService: Readonly<Record<string, OperationName>> = { GET: 'ListBuckets' }

const ofBucket: Readonly<Record<string, OperationName>> = {
  GET: 'ListObjects',
  HEAD: 'HeadBucket',
  PUT: 'CreateBucket',
  DELETE: 'DeleteBucket',
}

const ofObject: Readonly<Record<string, OperationName>> = {
  GET: 'GetObject',
  HEAD: 'HeadObject',
  PUT: 'PutObject',
  DELETE: 'DeleteObject',
}

/** By method and parameters, in the order in which they are looked at. */
const byParameter: readonly (readonly [
  method: string,
  on: 'bucket' | 'key',
  parameter: string,
  OperationName,
])[] = [
  ['GET', 'bucket', 'location', 'GetBucketLocation'],
  ['GET', 'bucket', 'versioning', 'GetBucketVersioning'],
  ['PUT', 'bucket', 'versioning', 'PutBucketVersioning'],
  ['GET', 'bucket', 'acl', 'GetBucketAcl'],
  ['PUT', 'bucket', 'acl', 'PutBucketAcl'],
  ['GET', 'bucket', 'uploads', 'ListMultipartUploads'],
  ['GET', 'bucket', 'versions', 'ListObjectVersions'],
  ['POST', 'bucket', 'delete', 'DeleteObjects'],
  ['GET', 'key', 'acl', 'GetObjectAcl'],
  ['GET', 'key', 'tagging', 'GetObjectTagging'],
  ['PUT', 'key', 'acl', 'PutObjectAcl'],
  ['GET', 'key', 'attributes', 'GetObjectAttributes'],
  ['POST', 'key', 'uploads', 'CreateMultipartUpload'],
  ['GET', 'key', 'uploadId', 'ListParts'],
  ['PUT', 'key', 'uploadId', 'UploadPart'],
  ['POST', 'key', 'uploadId', 'CompleteMultipartUpload'],
  ['DELETE', 'key', 'uploadId', 'AbortMultipartUpload'],
]

/** Parameters that an operation has besides the one that selects it, and that would make any other request another operation. */
const furtherParameters: Readonly<Partial<Record<OperationName, string>>> = {
  UploadPart: 'partNumber',
  UploadPartCopy: 'partNumber',
  GetObject: 'partNumber',
  HeadObject: 'partNumber',
  ListObjects: 'list-type',
}

const selectors: ReadonlySet<string> = new Set([
  ...Object.keys(subresources),
  ...byParameter.map(([, , parameter]) => parameter),
  ...Object.values(furtherParameters),
])

/**
 * The operation of a request; for one that is not implemented, its name as `unknown`. `isCopy` is whether the request names a source. A
 * parameter that selects another operation is never ignored: `DELETE /bucket?uploads` deletes no bucket.
 */
export function operationOf(
  method: string,
  target: Pick<RequestTarget, 'bucket' | 'key' | 'query'>,
  isCopy: boolean,
): { readonly name: OperationName } | { readonly unknown: string } {
  const { query } = target
  const [, , parameter, selected] = selectingRow(method, target) ?? []
  const plain = selected ?? operationOfPlace(method, target)
  const name = isCopy ? (copies[plain ?? ''] ?? plain) : plain
  const own = new Set([parameter, name && furtherParameters[name]])
  const other = [...query].find(([each, value]) => !own.has(each) && selects(method, each, value))?.[0]
  if (name === undefined || (selected === undefined && other !== undefined && other in subresources))
    return { unknown: nameOfUnknown(method, target) }
  if (other !== undefined) return { unknown: `${name} with the parameter ${other}` }
  if (name !== 'ListObjects' || !query.has('list-type')) return { name }
  return query.get('list-type') === '2'
    ? { name: 'ListObjectsV2' }
    : { unknown: 'ListObjects with another list-type than 2' }
}

/** Whether a parameter selects an operation. A request that changes something may be one that is not known here: it has no value. */
const selects = (method: string, parameter: string, value: string): boolean =>
  selectors.has(parameter) || (value === '' && changingMethods.has(method) && !/^x-/i.test(parameter))

const changingMethods: ReadonlySet<string> = new Set(['PUT', 'POST', 'DELETE'])

const copies: Readonly<Record<string, OperationName>> = {
  PutObject: 'CopyObject',
  UploadPart: 'UploadPartCopy',
}

function selectingRow(
  method: string,
  { bucket, key, query }: Pick<RequestTarget, 'bucket' | 'key' | 'query'>,
) {
  const on = key === null ? 'bucket' : 'key'
  return bucket === null
    ? undefined
    : byParameter.find(
        ([ofMethod, place, parameter]) => ofMethod === method && place === on && query.has(parameter),
      )
}

const operationOfPlace = (method: string, { bucket, key }: Pick<RequestTarget, 'bucket' | 'key'>) =>
  (bucket === null ? ofService : key === null ? ofBucket : ofObject)[method]

/** What S3 calls an operation that the service does not implement. */
function nameOfUnknown(
  method: string,
  { bucket, key, query }: Pick<RequestTarget, 'bucket' | 'key' | 'query'>,
): string {
  const place = bucket === null ? 'Service' : key === null ? 'Bucket' : 'Object'
  const parameter = Object.keys(subresources).find((each) => query.has(each))
  const about = parameter === undefined ? '' : subresources[parameter]
  const name = `${verbs[method] ?? method}${place}${about}`
  const isOfMany = method === 'GET' && !query.has('id') && !query.has('annotationName')
  if (isOfMany && /(Analytics|IntelligentTiering|Inventory|Metrics)Configuration$|Annotation$/.test(name))
    return `${name.replace('Get', 'List')}s`
  return irregularNames[name] ?? name
}

/** Names that do not consist of the method, the place and the parameter. */
const irregularNames: Readonly<Record<string, string>> = {
  DeleteBucketLifecycleConfiguration: 'DeleteBucketLifecycle',
  DeleteBucketPublicAccessBlock: 'DeletePublicAccessBlock',
  GetBucketLockConfiguration: 'GetObjectLockConfiguration',
  GetBucketPublicAccessBlock: 'GetPublicAccessBlock',
  GetBucketSession: 'CreateSession',
  PostBucketMetadataConfiguration: 'CreateBucketMetadataConfiguration',
  PostBucketMetadataTableConfiguration: 'CreateBucketMetadataTableConfiguration',
  PostObjectRestore: 'RestoreObject',
  PostObjectSelectContent: 'SelectObjectContent',
  PutBucketLockConfiguration: 'PutObjectLockConfiguration',
  PutBucketMetadataAnnotationTableConfiguration: 'UpdateBucketMetadataAnnotationTableConfiguration',
  PutBucketMetadataInventoryTableConfiguration: 'UpdateBucketMetadataInventoryTableConfiguration',
  PutBucketMetadataJournalTableConfiguration: 'UpdateBucketMetadataJournalTableConfiguration',
  PutBucketPublicAccessBlock: 'PutPublicAccessBlock',
  PutObjectEncryption: 'UpdateObjectEncryption',
  PutObjectRename: 'RenameObject',
}

/** Headers of operations that would change an object in a way that the service does not implement. */
const unsupportedHeaders =
  /^x-amz-(?:server-side-encryption|copy-source-server-side-encryption|tagging$|object-if-match$|object-lock-|object-ownership$|website-redirect-location$|grant-|if-|write-offset-bytes$|bucket-object-lock-enabled$|checksum-(?!(?:crc32|crc32c|crc64nvme|sha1|sha256|algorithm|mode|type)$)|expected-bucket-owner$|source-expected-bucket-owner$)/

/** The name of a header, or of a parameter, that would be ignored in silence; null if there is none. */
export function unsupportedPart(
  headers: readonly (readonly [name: string, value: string])[],
  { query }: Pick<RequestTarget, 'query'>,
): string | null {
  for (const [name, value] of headers) {
    if (unsupportedHeaders.test(name)) return name
    if (name === 'x-amz-storage-class' && value !== 'STANDARD') return name
  }
  const version = query.get('versionId')
  return version === null || version === 'null' ? null : 'versionId'
}
