import { describeOnPostgresAndS3 } from './suites.ts'

describeOnPostgresAndS3(
  'listing',
  'listing-under-change',
  'items',
  'trash',
  'bytes',
  'variants',
  'issuer',
  'issuer-users',
  'private-buckets',
  'signed-urls',
  'changes',
)
