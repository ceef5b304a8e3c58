import type { AccessKeys, KeyGrant } from '../access/key-access.ts'
import type { BucketDeleter } from '../buckets/bucket-deletion.ts'
import type { Actor } from '../core/token-rules.ts'
import type { Caller } from '../http/authorizer.ts'
import type { WholeBodyReader } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import type { FaultReporter } from '../http/problems.ts'
import type { MultipartOperations } from '../objects/multipart-operations.ts'
import type { Objects } from '../objects/object-operations.ts'
import type { Payload } from './authentication.ts'
import type { ObjectResponder } from './object-response.ts'
import type { OperationName } from './s3-operations.ts'
import type { S3Request } from './s3-request.ts'
import type { XmlContent } from './xml.ts'

/** The operations that requests of the S3 protocol call. */
export interface S3Operations {
  readonly accessKeys: AccessKeys
  readonly objects: Objects
  readonly multiparts: MultipartOperations
  readonly deleter: Pick<BucketDeleter, 'delete'>
}

/** What handlers share. */
export interface S3Context {
  readonly http: HttpContext
  readonly operations: S3Operations
  readonly responder: ObjectResponder
  readonly reportFault: FaultReporter
  /** Reads the bytes of documents, which share one memory. */
  readonly readDocumentBytes: WholeBodyReader
}

/** A request whose signature was verified, and which may do what it asks for. */
export interface S3Call {
  readonly request: S3Request
  readonly payload: Payload
  readonly grant: KeyGrant
  readonly actor: Actor
}

/** The same, in a bucket. */
export interface BucketCall extends S3Call {
  readonly bucket: string
  readonly caller: Caller
}

/** The same, of a key. */
export interface ObjectCall extends BucketCall {
  readonly key: string
}

/** What a handler responds. */
export interface S3Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** The name of the root element, and its content. */
  readonly xml?: readonly [root: string, content: XmlContent]
}

/** Null if the handler has sent the response. */
type S3Handler<Call> = (context: S3Context, call: Call) => Promise<S3Reply | null>

/** Handlers by the names of their operations. */
export type S3Handlers<Call, Name extends OperationName> = Readonly<Record<Name, S3Handler<Call>>>

/** The owner of all buckets and objects: the service has no users. */
export const owner = { ID: 'mediabucket', DisplayName: 'mediabucket' } as const
