/* Deprecated names cause a warning when the program defines CUDNN_WARN_DEPRECATED. */
#ifndef ASHLAR_CUDNN_DEPRECATION_H
#define ASHLAR_CUDNN_DEPRECATION_H

#if defined(CUDNN_WARN_DEPRECATED) && defined(__GNUC__)
#define CUDNN_DEPRECATED __attribute__((deprecated))
#define CUDNN_DEPRECATED_ENUM __attribute__((deprecated))
#else
#define CUDNN_DEPRECATED
#define CUDNN_DEPRECATED_ENUM
#endif

#endif /* ASHLAR_CUDNN_DEPRECATION_H */
