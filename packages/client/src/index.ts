export type { AuditActor, AuditEvent, EventOptions } from './audit-log.ts'
export type { Bucket } from './bucket.ts'
export type {
  BucketListOptions,
  BucketManager,
  BucketPage,
  BucketPageOptions,
  BucketSettings,
  CreateBucketOptions,
  CreatedBucket,
  DeleteBucketOptions,
  ManagedBucket,
  NewBucket,
  SetBucketOptions,
  TaggedBucket,
} from './buckets.ts'
export type { Change, ChangesOptions } from './changes.ts'
export type { Client } from './client.ts'
export type { CallOptions, ClientOptions, GetOptions } from './client-options.ts'
export { createClient } from './create-client.ts'
export type { FaultMembers, ParameterFault, Problem } from './errors.ts'
export {
  AnswerError,
  ConnectionError,
  MediabucketError,
  ProblemError,
  RedirectError,
  ShapeError,
  TimeoutError,
} from './errors.ts'
export type { ItemOptions, ItemPage, ItemPageOptions } from './item-list.ts'
export { createItemStore, type ItemStore, type ItemStoreOptions, type ItemStoreState } from './item-store.ts'
export type { KeyManager, SigningKey } from './keys.ts'
export type { LabelKey, LabelOptions, Labels, LabelValue } from './labels.ts'
export type { Link, LinkOptions, Links } from './links.ts'
export type {
  DeletedItems,
  DeleteOptions,
  DescribeOptions,
  Focus,
  LabelledItems,
  Media,
  MediaChanges,
  TaggedMedia,
  UpdateOptions,
  VariantSizes,
  Variants,
} from './media.ts'
export type { CrawlOptions, Page, PageLink, TaggedPage } from './page.ts'
export {
  type Picture,
  type PictureMedia,
  type PictureOptions,
  pictureOf,
  sourcesOf,
  withWidth,
} from './pictures.ts'
export { localStorageResume, type ResumeStore } from './resume-store.ts'
export type { RetryOptions } from './retry.ts'
export { createServiceClient, type ServiceClient } from './service.ts'
export type { Store } from './store.ts'
export type {
  CreatedToken,
  ManagedToken,
  NewToken,
  NewTokenLimits,
  Rotation,
  Token,
  TokenLimits,
  TokenManager,
} from './tokens.ts'
export type { UploadProgress } from './transport.ts'
export type { RestoredItems, TrashedMedia } from './trash.ts'
export type { FormFile, UploadAllOptions, UploadOptions } from './upload.ts'
export type { UploadSource } from './upload-content.ts'
export {
  createUploadQueue,
  type NamedFile,
  type QueuedUpload,
  type UploadQueue,
  type UploadQueueOptions,
  type UploadQueueState,
} from './upload-queue.ts'
export type { UrlUploadOptions, UrlUploadProgress } from './url-upload.ts'
export type { BucketUsage, DayOptions, Usage, UsageOptions } from './usage.ts'
export type {
  CreatedWebhook,
  NewWebhook,
  SecretRotation,
  Webhook,
  WebhookChanges,
  WebhookDelivery,
  WebhookManager,
} from './webhooks.ts'
