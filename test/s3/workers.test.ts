import { describeOnS3 } from './suites.ts'

describeOnS3('../operations/workers')
