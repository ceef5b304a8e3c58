import { describeOnPostgres } from './suites.ts'

describeOnPostgres('listing', 'one-item', 'token', 'authentication', 'idempotency', 'quotas')
