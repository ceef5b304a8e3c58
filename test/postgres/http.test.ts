import { describeOnPostgres } from './suites.ts'

describeOnPostgres('listing', 'items', 'one-item', 'token', 'authentication', 'idempotency', 'quotas')
