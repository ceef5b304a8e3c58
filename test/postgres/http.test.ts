import { describeOnPostgres } from './suites.ts'

describeOnPostgres('listing', 'items', 'edit', 'delete-many', 'token', 'authentication', 'quotas')
