'use client'

export { Picture, type PictureProps } from './picture.tsx'
export { UploadZone, type UploadZoneProps } from './upload-zone.tsx'
export { type Items, useItems } from './use-items.ts'
export { type Uploads, type UseUploadOptions, useUpload } from './use-upload.ts'
