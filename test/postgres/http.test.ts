import { describeOnPostgres } from './suites.ts'

describeOnPostgres('listing', 'items', 'token', 'authentication', 'quotas')
