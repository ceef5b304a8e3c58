import { describeOnPostgres } from './suites.ts'

describeOnPostgres(
  'upload-form',
  'upload-fast-path',
  'tus-protocol',
  'tus-concurrent',
  'tus-crash',
  'tus-quotas',
)
