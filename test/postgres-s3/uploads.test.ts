import { describeOnPostgresAndS3 } from './suites.ts'

describeOnPostgresAndS3('upload-form', 'upload-raw', 'idempotency', 'tus-protocol', 'tus-quotas')
