import type { Caller } from '../http/authorizer.ts'
import type { StoredObject } from '../objects/object-operations.ts'
import { readOptionalDocument } from './documents.ts'
import { type BucketCall, owner, type S3Context } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { childrenOf, childText, type XmlContent, type XmlElement } from './xml.ts'

// A bucket or an object is private or public-read (docs/interface.md SP10): no other ACL exists.

const everybody = 'http://acs.amazonaws.com/groups/global/AllUsers'

/** Canned ACLs, and whether everybody may read the object, or list the bucket. */
const canned: ReadonlyMap<string, boolean> = new Map([
  ['private', false],
  ['bucket-owner-read', false],
  ['bucket-owner-full-control', false],
  ['public-read', true],
])

const unsupported = (what: string) =>
  new S3Error('NotImplemented', `${what}: an ACL is private or public-read.`)

type PublicKeys = Pick<Caller, 'publicKeys'>

/** Whether the object that a request stores is for everybody. Throws S3Error `NotImplemented`, and `AccessControlListNotSupported` as requirePublicKeys. */
export function isPublicAcl(request: S3Request, caller: PublicKeys): boolean {
  const isPublic = readCanned(request)
  if (isPublic) requirePublicKeys(caller)
  return isPublic
}

/** Whether `x-amz-acl` names everybody. Throws S3Error `NotImplemented`. */
export function readCanned(request: S3Request): boolean {
  const acl = request.header('x-amz-acl') ?? 'private'
  const isPublic = canned.get(acl)
  if (isPublic === undefined) throw unsupported(`x-amz-acl ${acl}`)
  return isPublic
}

/** Nothing would be public in other buckets. */
export function requirePublicKeys({ publicKeys }: PublicKeys): void {
  if (publicKeys) return
  throw new S3Error(
    'AccessControlListNotSupported',
    'The bucket has no public keys, so that public-read has no effect. The operator allows them: mediabucket bucket set NAME --public-keys on',
  )
}

/** Whether a request that changes an ACL names everybody in it. Throws S3Error `NotImplemented`. */
export async function readAcl(context: S3Context, call: BucketCall): Promise<boolean> {
  const { request } = call
  const document = await readOptionalDocument(context, call, 'AccessControlPolicy')
  if (document === null) return readCanned(request)
  if (request.header('x-amz-acl') !== undefined)
    throw new S3Error('InvalidRequest', 'A request has x-amz-acl or a document, not both.')
  const grants = childrenOf(document, 'AccessControlList').flatMap((list) => childrenOf(list, 'Grant'))
  return grants.map(isForEverybody).includes(true)
}

/** Whether a grant lets everybody read. Throws S3Error `NotImplemented` for all others but that of the owner. */
function isForEverybody(grant: XmlElement): boolean {
  const [grantee] = childrenOf(grant, 'Grantee')
  if (grantee === undefined) throw new S3Error('MalformedXML')
  const isRead = childText(grant, 'Permission')?.trim() === 'READ'
  if (isRead && childText(grantee, 'URI')?.trim() === everybody) return true
  if (childText(grantee, 'ID')?.trim() !== owner.ID) throw unsupported('A grant')
  return false
}

const grantee = (type: string) =>
  `Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}"`

/** The document that describes who may read an object, or list a bucket. */
export const aclDocument = ({ isPublic }: Pick<StoredObject, 'isPublic'>): readonly [string, XmlContent] => [
  'AccessControlPolicy',
  {
    Owner: owner,
    AccessControlList: {
      Grant: [
        { [grantee('CanonicalUser')]: owner, Permission: 'FULL_CONTROL' },
        ...(isPublic ? [{ [grantee('Group')]: { URI: everybody }, Permission: 'READ' }] : []),
      ],
    },
  },
]
