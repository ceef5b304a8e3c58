import type { Caller } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import type { StoredObject } from '../objects/object-operations.ts'
import { readDocument } from './documents.ts'
import { type ObjectCall, owner } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { childrenOf, childText, type XmlContent } from './xml.ts'

// An object is private or public-read (docs/interface.md SP10): no other ACL exists.

const everybody = 'http://acs.amazonaws.com/groups/global/AllUsers'

/** Canned ACLs, and whether everybody may read the object. */
const canned: Readonly<Record<string, boolean>> = {
  private: false,
  'bucket-owner-read': false,
  'bucket-owner-full-control': false,
  'public-read': true,
}

const unsupported = (what: string) =>
  new S3Error('NotImplemented', `${what}: an object is private or public-read.`)

type PublicKeys = Pick<Caller, 'publicKeys'>

/** Whether the object that a request stores is for everybody. Throws S3Error `NotImplemented`, and `AccessControlListNotSupported` as requirePublicKeys. */
export function isPublicAcl(request: S3Request, caller: PublicKeys): boolean {
  const acl = request.header('x-amz-acl')
  if (acl === undefined) return false
  const isPublic = canned[acl]
  if (isPublic === undefined) throw unsupported(`x-amz-acl ${acl}`)
  if (isPublic) requirePublicKeys(caller)
  return isPublic
}

/** Nothing would be public in other buckets. */
function requirePublicKeys({ publicKeys }: PublicKeys): void {
  if (publicKeys) return
  throw new S3Error(
    'AccessControlListNotSupported',
    'The bucket has no public keys, so that public-read has no effect. The operator allows them: mediabucket bucket set NAME --public-keys on',
  )
}

/** Reads the ACL of a request that changes that of an object. */
export async function readAcl(http: Pick<HttpContext, 'readBody'>, call: ObjectCall): Promise<boolean> {
  const { request, caller } = call
  const document = await readDocument(http, call, 'AccessControlPolicy', true)
  if (document === null) return isPublicAcl(request, caller)
  if (request.header('x-amz-acl') !== undefined)
    throw new S3Error('InvalidRequest', 'A request has x-amz-acl or a document, not both.')
  let isPublic = false
  for (const list of childrenOf(document, 'AccessControlList'))
    for (const grant of childrenOf(list, 'Grant')) {
      const [grantee] = childrenOf(grant, 'Grantee')
      const permission = childText(grant, 'Permission')?.trim()
      if (grantee === undefined) throw new S3Error('MalformedXML')
      if (childText(grantee, 'URI')?.trim() === everybody && permission === 'READ') isPublic = true
      else if (childText(grantee, 'ID')?.trim() !== owner.ID) throw unsupported('A grant')
    }
  if (isPublic) requirePublicKeys(caller)
  return isPublic
}

const grantee = (type: string) =>
  `Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}"`

/** The document that describes who may read an object. */
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
