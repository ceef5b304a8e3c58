import { describeOnPostgresAndS3 } from './suites.ts'

describeOnPostgresAndS3('../operations/workers')
