import { describeOnPostgresAndS3 } from './suites.ts'

describeOnPostgresAndS3(
  'bytes',
  'ranges',
  'conditional-bytes',
  'variants',
  'one-item',
  'listing-under-change',
)
