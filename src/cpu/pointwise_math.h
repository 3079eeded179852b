#pragma once
typedef float _Complex c64;
typedef double _Complex c128;
