import { describeOnPostgres } from './suites.ts'

describeOnPostgres('bytes', 'conditional-bytes', 'listing-under-change')
