import { describeOnPostgres } from './suites.ts'

describeOnPostgres('../operations/workers')
