import type { KeyGrant } from '../access/key-access.ts'
import { createBucket, deleteBucket, setBucket } from '../buckets/bucket-operations.ts'
import { Fault } from '../core/faults.ts'
import { bucketNameRule, isBucketName } from '../core/names.ts'
import { formatTimestamp } from '../core/times.ts'
import { requireScope } from '../core/token-rules.ts'
import type { ListedBucket } from '../storage/catalog/bucket-list.ts'
import { aclDocument, readAcl, readCanned, requirePublicKeys } from './acl.ts'
import { readDocument, readOptionalDocument } from './documents.ts'
import {
  type BucketCall,
  owner,
  type S3Call,
  type S3Context,
  type S3Handlers,
  type S3Reply,
} from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import { childText } from './xml.ts'

/** Buckets of one page of ListBuckets at most. */
const maxBuckets = 10_000

/** The operations on buckets (docs/interface.md SP5). */
export const bucketHandlers: S3Handlers<S3Call, 'ListBuckets' | 'CreateBucket' | 'DeleteBucket'> = {
  ListBuckets: listBuckets,
  CreateBucket: makeBucket,
  DeleteBucket: removeBucket,
}

/** The response to HeadBucket. */
export const bucketHead = ({ http: { settings } }: S3Context): S3Reply => ({
  status: 200,
  headers: { 'x-amz-bucket-region': settings.s3Region },
})

/** The location of the first region of S3 is empty. */
const bucketLocation = ({ http: { settings } }: S3Context): S3Reply => ({
  status: 200,
  xml: ['LocationConstraint', settings.s3Region === 'us-east-1' ? '' : settings.s3Region],
})

/** What a bucket is, and the settings of S3 that all buckets have. */
export const bucketSettings: S3Handlers<
  BucketCall,
  | 'HeadBucket'
  | 'GetBucketLocation'
  | 'GetBucketVersioning'
  | 'PutBucketVersioning'
  | 'GetBucketAcl'
  | 'PutBucketAcl'
> = {
  HeadBucket: async (context) => bucketHead(context),
  GetBucketLocation: async (context) => bucketLocation(context),
  GetBucketVersioning: async () => ({ status: 200, xml: ['VersioningConfiguration', ''] }),
  PutBucketVersioning: putVersioning,
  GetBucketAcl: getAcl,
  PutBucketAcl: putAcl,
}

/** A bucket behaves as one whose versioning is suspended: a put replaces the object, which has no version. */
async function putVersioning(context: S3Context, call: BucketCall) {
  const document = await readDocument(context, call, 'VersioningConfiguration')
  const status = childText(document, 'Status')?.trim()
  if (status !== 'Enabled' && status !== 'Suspended') throw new S3Error('MalformedXML')
  const isDeleteGuarded = childText(document, 'MfaDelete')?.trim() === 'Enabled'
  if (status === 'Enabled' || isDeleteGuarded)
    throw new S3Error('NotImplemented', 'The service has no versions of objects.')
  return { status: 200 }
}

/** Whether everybody may list the bucket. */
export const isListedPublicly = ({ publicKeys, publicList }: ListedBucket): boolean =>
  publicKeys && publicList

async function findBucket({ http: { catalog } }: S3Context, name: string): Promise<ListedBucket> {
  const found = await catalog.findListedBucket(name)
  if (found === null) throw new S3Error('NoSuchBucket')
  return found
}

async function getAcl(context: S3Context, { bucket }: BucketCall) {
  return {
    status: 200,
    xml: aclDocument({ isPublic: isListedPublicly(await findBucket(context, bucket)) }),
  } as const
}

/** Whether everybody may list the bucket. Nobody writes to it without an access key. */
async function putAcl(context: S3Context, call: BucketCall) {
  const { bucket, caller, grant, actor } = call
  const publicList = await readAcl(context, call)
  if (publicList) requirePublicKeys(caller)
  if (publicList === (await findBucket(context, bucket)).publicList) return { status: 200 }
  requireScope(grant, 'buckets:manage')
  await setBucket(context.http.catalog, bucket, { publicList }, null, Date.now(), actor)
  return { status: 200 }
}

/** Throws the error for a bucket in which the access key grants nothing. Programs create a bucket after `NoSuchBucket`. */
export async function refuseBucket(
  { catalog }: Pick<S3Context['http'], 'catalog'>,
  { bucketId }: Pick<KeyGrant, 'bucketId'>,
  name: string,
): Promise<never> {
  if (bucketId === null || !isBucketName(name) || (await catalog.findListedBucket(name)) === null)
    throw new S3Error('NoSuchBucket')
  throw new S3Error('AccessDenied', 'The access key belongs to another bucket.')
}

/** All buckets for a service token that may manage them, otherwise the bucket of the token. */
async function listBuckets({ http: { catalog } }: S3Context, { grant, request }: S3Call) {
  const prefix = request.parameter('prefix') ?? ''
  const limit = readLimit(request.parameter('max-buckets'))
  const after = request.parameter('continuation-token') ?? ''
  let names: readonly { readonly name: string; readonly createdAt: number }[] = []
  let isCut = false
  if (grant.bucketId !== null) {
    const own = await catalog.bucket(grant.bucketId)
    const listed = own && (await catalog.findListedBucket(own.name))
    if (listed?.name.startsWith(prefix)) names = [listed]
  } else if (!grant.scopes.has('buckets:manage'))
    throw new S3Error('AccessDenied', 'Listing buckets needs a token with the scope buckets:manage.')
  else {
    // Names have ASCII characters, so that any engine sorts them alike.
    const place = after === '' ? null : { value: after, id: Number.MAX_SAFE_INTEGER }
    const { rows } = await catalog.listBucketsAfter({ order: 'name', prefix }, place, limit + 1)
    isCut = rows.length > limit
    names = rows.slice(0, limit).map(({ bucket }) => bucket)
  }
  const last = names.at(-1)
  return {
    status: 200,
    xml: [
      'ListAllMyBucketsResult',
      {
        Owner: owner,
        Buckets: {
          Bucket: names.map(({ name, createdAt }) => ({
            Name: name,
            CreationDate: formatTimestamp(createdAt),
          })),
        },
        ContinuationToken: isCut ? last?.name : undefined,
        Prefix: prefix === '' ? undefined : prefix,
      },
    ],
  } as const
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return maxBuckets
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > maxBuckets)
    throw new S3Error('InvalidArgument', `max-buckets must be a number from 1 to ${maxBuckets}.`)
  return limit
}

async function makeBucket(context: S3Context, call: S3Call) {
  const {
    catalog,
    settings: { s3BucketOptions: defaults },
  } = context.http
  const { request, actor } = call
  const name = request.target.bucket ?? ''
  if (!isBucketName(name)) throw new S3Error('InvalidBucketName', bucketNameRule)
  const document = await readOptionalDocument(context, call, 'CreateBucketConfiguration')
  const location = document && childText(document, 'LocationConstraint')
  if (document?.children.some((child) => child.name !== 'LocationConstraint'))
    throw new S3Error('NotImplemented', 'CreateBucketConfiguration has LocationConstraint only.')
  if (location !== null && location !== undefined && !/^[\w-]{0,64}$/.test(location))
    throw new S3Error('MalformedXML')
  const settings = { ...defaults, ...(readCanned(request) && publicSettings) }
  await createBucket(catalog, { name, settings, token: null }, null, Date.now(), actor)
  return { status: 200, headers: { location: `/${name}` } }
}

const publicSettings = { publicKeys: true, publicList: true }

async function removeBucket(
  { http: { catalog }, operations: { deleter } }: S3Context,
  { request, actor }: S3Call,
) {
  const name = request.target.bucket ?? ''
  if (!isBucketName(name)) throw new S3Error('NoSuchBucket')
  try {
    await deleteBucket({ catalog, deleter }, name, false, null, actor)
  } catch (error) {
    if (error instanceof Fault && error.code === 'bucket-not-empty') throw new S3Error('BucketNotEmpty')
    throw error
  }
  return { status: 204 }
}
