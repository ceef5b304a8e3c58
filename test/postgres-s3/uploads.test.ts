import { describeOnPostgresAndS3 } from './suites.ts'

describeOnPostgresAndS3('upload-form', 'idempotency', 'tus-protocol', 'metadata', 'taken')
